"""A database whose dump left the catalog of the lake out, and a database with two lakes."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from menzil.cli.main import main
from menzil.install import drift, migrate
from menzil.model.errors import MenzilError
from menzil.spark.lake.catalog import MESSAGES, NAMESPACE, open_catalog, place, second
from menzil.spark.lake.errors import LakeError
from menzil.spark.lake.register import register
from tests.integration.lake.conftest import Lake
from tests.integration.lake.engines import ROWS, make_tables


def test_migrate_makes_the_catalog_again_that_a_dump_left_out(lake: Lake, db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("drop schema menzil_lake cascade")  # what `pg_dump -n menzil` brings
    with pytest.raises(MenzilError, match="has no catalog of a lake") as caught:
        open_catalog(db)
    assert "menzil migrate" in str(caught.value.hint)
    assert "menzil lake register" in str(caught.value.hint)
    assert migrate(db).changed
    assert not migrate(db).changed
    with psycopg.connect(db, autocommit=True) as conn:
        assert drift(conn) == []
        conn.execute("set role menzil_pipeline")
        assert conn.execute("select count(*) from menzil_lake.iceberg_tables").fetchone() == (0,)
    catalog = open_catalog(db)
    register(catalog, lake.path)
    assert catalog.load_table((NAMESPACE, MESSAGES)).scan().count() == len(ROWS)


def test_a_second_lake_is_registered_beside_the_first(lake: Lake, db: str, tmp_path: Path) -> None:
    catalog = open_catalog(db)
    first = make_tables(catalog, str(tmp_path)).metadata_location
    with pytest.raises(LakeError, match="The catalog has") as caught:
        register(catalog, lake.path)
    assert "--beside" in str(caught.value.hint)
    said = CliRunner().invoke(main, ["lake", "register", "--beside", "--dsn", db, lake.path])
    name = second(place(lake.path))
    assert (said.exit_code, f"{name}.messages is at {lake.pointer}" in said.output) == (0, True)
    assert catalog.load_table((name, MESSAGES)).scan().count() == len(ROWS)
    assert catalog.load_table((NAMESPACE, MESSAGES)).metadata_location == first
    register(catalog, lake.path)  # the catalog has it, under its own name
    assert catalog.load_table((NAMESPACE, MESSAGES)).metadata_location == first
