"""A database whose dump left the catalog of the lake out, and a database with two lakes."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from menzil.cli.main import main
from menzil.install import drift, migrate
from menzil.model.errors import MenzilError
from menzil.spark.jobs.export import export
from menzil.spark.jobs.plainly import of_lake
from menzil.spark.lake import commit
from menzil.spark.lake.catalog import MESSAGES, NAMESPACE, open_catalog, place, second
from menzil.spark.lake.cover import Part
from menzil.spark.lake.errors import LakeDamagedError, LakeError, LakeForeignError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.memory import Slice, cover, source_property
from menzil.spark.lake.register import register
from menzil.spark.lake.table import open_for_writing, open_lake
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


def test_a_lake_whose_disk_is_not_mounted_is_refused_and_no_new_one_begins_in_its_place(
    db: str, tmp_path: Path
) -> None:
    here, there = tmp_path / "lake", tmp_path / "elsewhere"
    pointer = make_tables(open_catalog(db), str(here)).metadata_location
    here.rename(there)
    here.mkdir()
    for opened in (open_for_writing, open_lake):
        with pytest.raises(LakeDamagedError, match="its metadata is not there") as caught:
            opened(here, db)
        assert pointer.removeprefix("file://") in caught.value.message
        assert "mount its disk" in str(caught.value.hint)
    found, is_new = open_for_writing(tmp_path / "another", db)
    assert (found.tables, is_new, found.namespace) == ({}, False, second(place(str(tmp_path / "another"))))


def test_a_lake_that_was_moved_is_neither_read_nor_written_to_nor_registered(db: str, tmp_path: Path) -> None:
    here, there = tmp_path / "lake", tmp_path / "elsewhere"
    make_tables(open_catalog(db), str(here))
    here.rename(there)
    for given in (db, None):
        with pytest.raises(LakeError, match=f"The lake in {there} was moved or copied") as caught:
            open_lake(there, given)
        assert f"paths in {here}" in caught.value.message
    with pytest.raises(LakeError, match="was moved or copied"):
        open_for_writing(there, db)
    with psycopg.connect(db) as conn:
        assert conn.execute("select count(*) from menzil_lake.iceberg_tables").fetchone() == (2,)
    there.rename(here)
    assert open_lake(here, db).tables[MESSAGES].scan().count() == len(ROWS)


def test_a_lake_that_cannot_be_written_is_told_in_a_sentence(db: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nothing: Any = None  # no session: the lake is made before Spark has anything to do
    with pytest.raises(LakeError, match=r"cannot be read or written: .*/file/lake.*: Not a directory\.") as caught:
        export(nothing, db, tmp_path / "file" / "lake")
    assert "half written" in str(caught.value.hint)
    with pytest.raises(LakeError, match="No space left on device"):
        of_lake(_full)()


def _full() -> None:
    raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")


def test_a_second_database_does_not_export_to_the_lake_of_the_first_by_mistake(
    lake: Lake, db: str, tmp_path: Path
) -> None:
    found, _ = open_for_writing(tmp_path, db)
    found.make(MESSAGES)
    exported = Slice("run", "2025-03", (Part(0, 10),), Fingerprint(1, 2, 3))
    commit.remember(found, MESSAGES, cover([exported]) | source_property("1/2/3"))
    nothing: Any = None  # no session: it is refused before Spark has anything to do
    with pytest.raises(LakeForeignError, match="exported from another database") as caught:
        export(nothing, lake.dsn, tmp_path)
    with psycopg.connect(lake.dsn) as conn:
        assert conn.execute("select count(*) from menzil_lake.iceberg_tables").fetchone() == (2,)  # those it had
    assert "another --lake" in str(caught.value.hint)
