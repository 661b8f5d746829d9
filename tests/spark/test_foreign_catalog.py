"""A catalog of `.pyiceberg.yaml` instead of that in the queue's database: a real one, of SQLite."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from menzil.model.errors import UsageError
from menzil.spark import lake
from menzil.spark.jobs import export_drop
from menzil.spark.jobs.export import export
from menzil.spark.lake import commit, register
from menzil.spark.lake.catalog import open_catalog
from menzil.spark.lake.schema import MESSAGES
from menzil.spark.lake.table import open_lake
from tests.spark.lake_history import DECEMBER, JANUARY, archived, fill, in_database, in_lake


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a catalog named elsewhere."""
    place = tmp_path / "catalog.db"
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  elsewhere:\n    type: sql\n    uri: sqlite:///{place}\n  broken:\n    type: nonsense\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return place


def pointers(catalog: Path) -> dict[str, str]:
    with sqlite3.connect(catalog) as conn:
        return dict(conn.execute("select table_name, metadata_location from iceberg_tables"))


def test_names_that_are_not_there_and_catalogs_that_cannot_be_opened_are_refused(db: str, catalog: Path) -> None:
    with pytest.raises(UsageError, match="There is no catalog elsewere") as said:
        open_catalog(db, "elsewere")
    assert "broken, elsewhere" in (said.value.hint or "")
    with pytest.raises(UsageError, match=r"The catalog broken .* cannot be opened"):
        open_catalog(db, "broken")
    assert not catalog.exists()


@pytest.mark.slow
def test_a_lake_in_a_foreign_catalog_is_exported_verified_swept_and_dropped_when_it_is_proved(
    spark: SparkSession, db: str, catalog: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "lake"
    fill(db, 1, 8)
    whole = in_database(db)
    assert export(spark, db, place, catalog="elsewhere").rows == 8
    assert in_lake(place) == whole
    assert pointers(catalog).keys() == {"messages", "events"}
    with psycopg.connect(db) as conn:
        assert conn.execute("select count(*) from menzil_lake.iceberg_tables").fetchone() == (0,)
    assert lake.verify(place, db, spark=spark, catalog="elsewhere").problems == ()
    lake.sweep(place, db, catalog="elsewhere", keep=timedelta(0), orphaned=timedelta(0))
    assert lake.verify(place, db, spark=spark, catalog="elsewhere").problems == ()
    with pytest.raises(UsageError, match="--replace works only"), psycopg.connect(db) as conn:
        register.replace(open_catalog(db, "elsewhere"), conn, str(place))

    # A commit of another program between the proof and the drop: the month is proved again, and only then it leaves.
    hold, prove, proofs = export_drop._hold, export_drop._prove, []

    def proving(spark: SparkSession, there: Any, month: str) -> None:
        proofs.append(month)
        prove(spark, there, month)

    def holding(conn: Any, there: Any) -> None:
        if len(proofs) == 1:
            other = open_lake(place, db, catalog="elsewhere")
            commit.remember(other, MESSAGES, {"somebody.else": "was here"})
        hold(conn, there)

    monkeypatch.setattr(export_drop, "_prove", proving)
    monkeypatch.setattr(export_drop, "_hold", holding)
    assert export(spark, db, place, drop=True, catalog="elsewhere").dropped == [DECEMBER, JANUARY]
    assert proofs == [DECEMBER, DECEMBER, JANUARY]
    assert archived(db) == 0
    assert in_lake(place) == whole
