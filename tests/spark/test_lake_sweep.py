"""What a sweep must never take, whoever calls it, from where, and however the lake is spelled. Without Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import pytest

from menzil.embedded import Embedded
from menzil.spark import lake as lakes
from menzil.spark.jobs.export import _alone as exporting
from menzil.spark.lake import LakeForeignError
from menzil.spark.lake.cover import Part
from menzil.spark.lake.place import address
from menzil.spark.lake.schema import MESSAGES
from menzil.spark.lake.table import Lake, open_for_writing, open_lake
from tests.conftest import database
from tests.spark.lake_files import begun, finish, written
from tests.spark.test_lake_commits import ids, set_back

sweeping = import_module("menzil.spark.lake.sweep")  # the package has a function of that name

AT, MONTH = datetime(2025, 3, 31, 12, tzinfo=UTC), "2025-03"
NONE = timedelta(0)


@pytest.fixture
def other(server: Embedded, _installed: str) -> Iterator[str]:
    """Another database with menzil."""
    with database(server, "swept_from_elsewhere", _installed) as dsn:
        yield dsn


def filled(place: Path | str, dsn: str, count: int = 1) -> Lake:
    lake = open_for_writing(place, dsn)[0]
    for number in range(count):
        tx = begun(lake)
        finish(lake, tx, written(lake, tx, "a", [number], AT), f"r{number}", Part(number, number + 1), MONTH)
    return lake


def hint(place: Path) -> Path:
    return place / MESSAGES / "metadata" / "version-hint.text"


def files(place: Path) -> set[Path]:
    return set(place.rglob("*.*"))


def later(place: Path, dsn: str) -> None:
    """One more commit."""
    lake = open_for_writing(place, dsn)[0]
    tx = begun(lake)
    finish(lake, tx, written(lake, tx, "a", [7], AT), "later", Part(7, 8), MONTH)


def aged(place: Path, days: int) -> None:
    """All files were written so many days before."""
    then = time.time() - days * 86_400
    for path in place.rglob("*.*"):
        os.utime(path, (then, then))


SPARK: Any = None  # what is refused is refused before Spark is asked


def test_a_database_that_was_set_back_removes_no_file_of_the_newer_lake(db: str, tmp_path: Path) -> None:
    filled(tmp_path, db)
    before = hint(tmp_path).read_text()
    later(tmp_path, db)
    there = files(tmp_path)
    set_back(db, before)
    with pytest.raises(LakeForeignError, match="The lake is newer than the catalog of this database says"):
        lakes.sweep(tmp_path, db, keep=NONE, orphaned=NONE)
    with pytest.raises(LakeForeignError, match="The lake is newer than the catalog of this database says"):
        lakes.compact(SPARK, tmp_path, db)
    assert files(tmp_path) == there
    assert ids(open_lake(tmp_path)) == [0, 7]


def test_a_database_that_does_not_know_the_lake_removes_nothing(db: str, other: str, tmp_path: Path) -> None:
    filled(tmp_path, db)
    behind = hint(tmp_path).read_text()
    later(tmp_path, db)
    hint(tmp_path).write_text(behind)  # the exporter was killed before it could write the hint
    there = files(tmp_path)
    with pytest.raises(LakeForeignError, match=r"The catalog does not know the lake .* cannot be told") as said:
        lakes.sweep(tmp_path, other, keep=NONE, orphaned=NONE)
    assert "menzil lake register" in str(said.value.hint)
    with pytest.raises(LakeForeignError, match="The catalog does not know the lake"):
        lakes.compact(SPARK, tmp_path, other)
    assert files(tmp_path) == there
    assert ids(open_lake(tmp_path, db)) == [0, 7]


def test_files_of_an_export_that_takes_days_stay_until_it_is_done(
    db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = filled(tmp_path, db)
    tx = begun(lake)
    slow = written(lake, tx, "a", [5], AT)
    aged(tmp_path, 2)
    monkeypatch.setattr(sweeping, "PATIENCE", 0.0)
    with exporting(db, address(tmp_path)):
        swept = lakes.sweep(tmp_path, db)
        assert (swept.busy, swept.removed) == (True, 0)
        finish(lake, tx, slow, "slow", Part(5, 6), MONTH)
    assert ids(open_lake(tmp_path, db)) == [0, 5]
    assert Path(slow[0].path).exists()
    left = Path(written(lake, begun(lake), "a", [6], AT)[0].path)
    aged(tmp_path, 2)
    monkeypatch.undo()
    swept = lakes.sweep(tmp_path, db)
    assert not swept.busy
    assert not left.exists()
    assert Path(slow[0].path).exists()


def test_a_clock_that_is_days_ahead_makes_no_file_old(db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(days=9)

    lake = filled(tmp_path, db, 2)
    young = Path(written(lake, begun(lake), "a", [5], AT)[0].path)
    monkeypatch.setattr(sweeping, "datetime", Ahead)
    assert lakes.sweep(tmp_path, db) == lakes.SweepReport(0, 0, 0)
    assert young.exists()
    assert not list(tmp_path.rglob("*.clock"))


@pytest.mark.parametrize(
    "spelling", ["file://{}/", "file://{}//x/../lake", "{}//lake", "{}/./lake/", "file:///{}/lake", "file://{}//lake"]
)
def test_a_lake_that_is_spelled_oddly_keeps_what_counts(db: str, tmp_path: Path, spelling: str) -> None:
    place = spelling.format(tmp_path)
    filled(place, db, 2)
    there = set(tmp_path.rglob("*.parquet"))
    assert len(there) == 2
    lakes.sweep(place, db, keep=NONE, orphaned=NONE)
    assert set(tmp_path.rglob("*.parquet")) == there
    assert ids(open_lake(place, db)) == [0, 1]
