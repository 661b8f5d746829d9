"""A database that is not the one that was exported or streamed before: nothing is left out without a word."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from menzil.embedded import Embedded, binaries
from menzil.model.errors import RefusedError
from menzil.spark.jobs.export import export
from menzil.spark.jobs.replay import replay
from menzil.spark.lake import LakeForeignError, compact, sweep
from menzil.spark.lake.compare import archive_problems
from menzil.spark.lake.table import open_lake
from menzil.spark.session import explain
from menzil.spark.source.feed import _must_be_the_same
from menzil.spark.source.places import Place
from tests.spark import stock
from tests.spark.lake_history import in_lake
from tests.spark.test_feed import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIN = binaries.find().bin


@pytest.fixture
def younger() -> Iterator[Embedded]:
    """A second server, which has not had as many transactions as the first."""
    with tempfile.TemporaryDirectory(prefix="mz-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        running = Embedded(Path(place) / "pg", durable=False).start()
        yield running
        running.close(wait=30)


def moved(dsn: str, server: Embedded, file: Path) -> str:
    """The database, dumped and restored there."""
    subprocess.run([BIN / "pg_dump", "-Fc", "-Z0", "-f", file, "-d", dsn], check=True)
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("create database moved")
    there = make_conninfo(server.dsn, dbname="moved")
    subprocess.run([BIN / "pg_restore", "--no-privileges", "--no-owner", "-d", there, file], check=True)
    return there


def archive(dsn: str, number: int, first: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        stock.archive(conn, number, months=1, first=first)


@pytest.mark.slow
@pytest.mark.skipif(not (BIN / "pg_dump").exists(), reason=f"{BIN} has no pg_dump")
def test_after_a_restore_into_another_server_nothing_is_left_out_without_a_word(
    spark: SparkSession, db: str, younger: Embedded, tmp_path: Path
) -> None:
    with psycopg.connect(db, autocommit=True) as conn:  # an old server
        conn.execute("do $$ begin for n in 1..20000 loop perform pg_current_xact_id(); commit; end loop; end $$")
    archive(db, 6, 1)
    assert export(spark, db, tmp_path / "lake").rows == 6
    stream = Stream(spark, db, tmp_path)
    assert len(stream.run()) == 6
    there = moved(db, younger, tmp_path / "dump")
    archive(there, 2, 100)  # what is new
    stream.options["dsn"] = there
    for place in ("lake", "another"):
        with pytest.raises(LakeForeignError, match="transaction ids of another server") as caught:
            export(spark, there, tmp_path / place)
        assert "menzil.rebuild()" in str(caught.value.hint)
    with pytest.raises(Exception, match="transaction ids of another server"):
        stream.run()

    with psycopg.connect(there, autocommit=True) as conn:
        conn.execute("select menzil.rebuild()")
    with pytest.raises(LakeForeignError, match="this server has come to"):
        export(spark, there, tmp_path / "lake")
    with pytest.raises(Exception, match="another server, or another database") as refused:
        stream.run()
    assert "new checkpoint" in str(explain(refused.value).hint)
    assert export(spark, there, tmp_path / "another").rows == 8
    assert set(in_lake(tmp_path / "another")) == {1, 2, 3, 4, 5, 6, 100, 101}
    # A replay asks for no transaction ids: the old lake is sent to the new server whole.
    assert replay(spark, there, str(tmp_path / "lake"), run_id="again").messages == 6
    assert sorted(Stream(spark, there, tmp_path / "new").run()) == [1, 2, 3, 4, 5, 6, 100, 101]


def test_a_copy_that_went_its_own_way_is_not_exported_to_the_lake_of_the_first(
    spark: SparkSession, db: str, server: Embedded, tmp_path: Path
) -> None:
    archive(db, 4, 1)
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        name = conninfo_to_dict(db)["dbname"]
        conn.execute(f"create database copied template {name}")
    try:
        copied = make_conninfo(server.dsn, dbname="copied")
        archive(copied, 1, 50)  # before the export, so its transaction id counts as exported
        with psycopg.connect(copied, autocommit=True) as conn:
            conn.execute("select menzil.message_erase(1)")  # which is still the message that the lake has
        archive(db, 1, 60)
        assert export(spark, db, tmp_path).rows == 5
        with pytest.raises(LakeForeignError, match=r"it has 1 message of 2026-01 that the lake has not\."):
            export(spark, copied, tmp_path)
        assert export(spark, db, tmp_path).rows == 0  # the first goes on
        with psycopg.connect(db, autocommit=True) as conn:
            conn.execute("select menzil.message_erase(1)")
            assert archive_problems(open_lake(tmp_path, db), db, spark) == []
            conn.execute("update menzil.message set priority = 7 where id = 2")
        problem = "The database has other messages of 2026-01 than were exported."
        assert archive_problems(open_lake(tmp_path, db), db, spark) == [problem]
    finally:
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("drop database copied with (force)")


def test_a_copy_leaves_the_lake_of_its_original_alone_until_it_is_adopted(
    spark: SparkSession, db: str, server: Embedded, tmp_path: Path
) -> None:
    archive(db, 2, 1)
    assert export(spark, db, tmp_path / "lake").rows == 2
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute(f"create database copied template {conninfo_to_dict(db)['dbname']}")
    try:
        copied = make_conninfo(server.dsn, dbname="copied")
        archive(copied, 1, 50)  # what its original will never have
        works = (
            lambda: export(spark, copied, tmp_path / "lake"),
            lambda: compact(spark, tmp_path / "lake", copied),
            lambda: sweep(tmp_path / "lake", copied),
        )
        for work in works:
            with pytest.raises(LakeForeignError, match="This database is a copy, and the lake belongs to its original"):
                work()
        assert set(in_lake(tmp_path / "lake")) == {1, 2}
        assert export(spark, db, tmp_path / "lake").rows == 0  # the original goes on
        assert export(spark, copied, tmp_path / "own").rows == 3
        with psycopg.connect(copied, autocommit=True) as conn:
            conn.execute("select menzil.adopt()")
        sweep(tmp_path / "lake", copied)
    finally:
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("drop database copied with (force)")


def test_a_checkpoint_of_another_server_or_of_a_later_time_is_refused() -> None:
    _must_be_the_same(Place(5, 0, 0, "a/1"), Place(9, 0, 0, "a/1"))
    _must_be_the_same(Place(5, 0, 0, None), Place(9, 0, 0, "a/1"))  # of an older menzil
    with pytest.raises(RefusedError, match="another server, or another database") as caught:
        _must_be_the_same(Place(5, 3, 0, "a/1"), Place(9, 0, 0, "b/1"))
    assert 'startingOffsets {"xid": 5, "id": 3}' in str(caught.value.hint)
    with pytest.raises(RefusedError, match="at transaction 10, and the server has come to 9"):
        _must_be_the_same(Place(10, 0, 0, "a/1"), Place(9, 0, 0, "a/1"))
    place = Place(7, 8, 9, "a/1")
    assert Place.of(place.offset()) == place
    assert Place.of({"xid": 7, "id": 8, "drop": 9}) == Place(7, 8, 9)
