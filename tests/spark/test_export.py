"""Export to a lake: complete, verified, repeatable after a crash anywhere, and nothing leaves the database unproved."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet
import pytest
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import SparkSession

from menzil.model.errors import UsageError
from menzil.spark import lake
from menzil.spark.jobs import export_rows
from menzil.spark.jobs.export import export
from menzil.spark.lake import LakeDamagedError, commit, schema
from menzil.spark.lake.read import of_month
from menzil.spark.lake.table import open_lake
from menzil.spark.source import partitions
from menzil.spark.source.places import SETTINGS
from menzil.spark.source.survey import Survey
from tests.spark.lake_files import begun, written
from tests.spark.lake_history import (
    DECEMBER,
    JANUARY,
    archived,
    event_lines,
    fill,
    in_database,
    in_lake,
    lines_in_lake,
)

pytestmark = pytest.mark.slow


class Crash(BaseException):
    """What a kill does, without the wait for another JVM: no handler of ours catches it."""


def crash_at(step: str):
    def progress(now: str, month: str, rows: int) -> None:
        if now == step:
            raise Crash(step)

    return progress


@pytest.mark.usefixtures("compiled")
def test_the_lake_equals_the_archive_row_by_row_in_files_with_field_ids(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db)
    report = export(spark, db, tmp_path, run_id="first")
    expected = in_database(db)
    assert report.rows == len(expected) == 60
    assert in_lake(tmp_path, spark) == in_lake(tmp_path) == expected
    checked = lake.verify(tmp_path, db, spark=spark)
    assert checked.problems == ()
    assert checked.rows == 60
    assert lines_in_lake(tmp_path) == event_lines(db)
    assert report.events == len(event_lines(db)) > 0
    password = conninfo_to_dict(db)["password"].encode()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and password in path.read_bytes()]

    for path in lake.files(tmp_path):
        file = pyarrow.parquet.ParquetFile(path)
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"
        assert len(set(pyarrow.parquet.read_table(path)["channel"].to_pylist())) == 1
        ids = field_ids(file.schema_arrow)
        assert None not in ids.values(), "the element of a list and its fields too"
        assert len(set(ids.values())) == len(ids) == len(schema.COLUMNS) + 1 + len(schema.ATTEMPT)
    assert {path.suffix for path in tmp_path.rglob("data/**/*") if path.is_file()} == {".parquet"}


def field_ids(fields: Any, before: str = "") -> dict[str, str | None]:
    """The id of every field of a Parquet file."""
    found = {}
    for field in fields:
        name = f"{before}{field.name}"
        found[name] = (field.metadata or {}).get(b"PARQUET:field_id")
        if pyarrow.types.is_struct(field.type):
            found |= field_ids(field.type, f"{name}.")
        elif pyarrow.types.is_list(field.type) or pyarrow.types.is_large_list(field.type):
            found |= field_ids([field.type.value_field], f"{name}.")
    return found


def test_tries_that_are_too_many_to_be_sent_to_every_task_are_counted_where_they_are_read(
    spark: SparkSession, db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 1, 12)
    with psycopg.connect(db, autocommit=True) as conn:
        assert export_rows.few(conn, DECEMBER, 2, 12)
        # Deferrals of messages that are not exported now, but whose ids lie between: read all the same.
        monkeypatch.setattr(export_rows, "BROADCAST", 20 * export_rows.AROUND)
        assert export_rows.few(conn, DECEMBER, 2, 2)
        conn.execute(
            "insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at)"
            " select 3, n, (select min(id) from menzil.channel), 'deferred', '2025-01-02Z', '2025-01-02Z'"
            " from generate_series(100, 120) n"
        )
        assert not export_rows.few(conn, DECEMBER, 2, 12)
        assert not export_rows.few(conn, DECEMBER, 3, 3)
        conn.execute("delete from menzil.attempt where attempt >= 100")
    monkeypatch.setattr(export_rows, "BROADCAST", 0)
    export(spark, db, tmp_path)
    assert in_lake(tmp_path) == in_database(db)


def test_a_second_run_exports_only_what_is_new_and_a_repeated_one_nothing(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db, 1, 20)
    export(spark, db, tmp_path, run_id="first")
    fill(db, 21, 30)
    assert export(spark, db, tmp_path, run_id="first").rows == 0
    assert export(spark, db, tmp_path, run_id="second").rows == 10
    assert in_lake(tmp_path) == in_database(db)

    # The two runs left two files in each partition: together they are one.
    before = lake.files(tmp_path) + lake.files(tmp_path, table="events")
    at = datetime.now(UTC)
    report = lake.compact(spark, tmp_path, db)
    assert report.after < report.before == len(before)
    assert report.removed == 0
    assert set(lake.files(tmp_path)).isdisjoint(before)
    assert in_lake(tmp_path) == in_database(db)
    assert lines_in_lake(tmp_path) == event_lines(db)
    assert lake.verify(tmp_path, db, spark=spark).problems == ()
    assert lake.compact(spark, tmp_path, db).before == 0

    # Readers that began before go on, and time travel, until the sweep.
    assert set(lake.files(tmp_path, snapshot=at)) < set(before)
    assert lake.read(spark, tmp_path, snapshot=at).count() == 30
    swept = lake.sweep(tmp_path, db, keep=timedelta(0), orphaned=timedelta(0))
    assert swept.removed > len(before)
    assert not [path for path in before if Path(path).exists()]
    assert sorted(str(path) for path in (tmp_path / "messages").rglob("*.parquet")) == lake.files(tmp_path)
    assert lake.verify(tmp_path, db, spark=spark).problems == ()
    assert export(spark, db, tmp_path, run_id="second").repeated, "what a run did is known without its snapshot"
    with pytest.raises(UsageError, match="no snapshot"):
        lake.read(spark, tmp_path, snapshot=at)


def test_a_run_that_crashes_at_every_step_leaves_nothing_half_and_ends_exact(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db, 1, 24)
    whole = in_database(db)
    for step in ("write", "verify", "commit"):
        with pytest.raises(Crash, match=step):
            export(spark, db, tmp_path, run_id="torn", progress=crash_at(step))
        assert in_lake(tmp_path) == {}
    with pytest.raises(Crash, match="publish"):
        export(spark, db, tmp_path, run_id="torn", progress=crash_at("publish"))
    assert set(in_lake(tmp_path)) == set(range(2, 25, 2)), "December counts"
    assert export(spark, db, tmp_path, run_id="torn").rows == 12
    assert in_lake(tmp_path) == whole

    fill(db, 25, 30)
    more = in_database(db)
    with pytest.raises(Crash, match="commit"):  # verified files lie among the others, and do not count yet
        export(spark, db, tmp_path, run_id="more", progress=crash_at("commit"))
    assert in_lake(tmp_path) == whole
    assert archived(db) == len(more) == 30
    with pytest.raises(Crash, match="drop"):
        export(spark, db, tmp_path, run_id="more", drop=True, progress=crash_at("drop"))
    assert archived(db) == 15
    assert export(spark, db, tmp_path, run_id="more", drop=True).dropped == [JANUARY]
    assert archived(db) == 0
    assert in_lake(tmp_path) == more
    again = export(spark, db, tmp_path, run_id="more", drop=True)
    assert (again.rows, again.dropped, again.events) == (0, [], 0)
    assert lines_in_lake(tmp_path) == event_lines(db), "the drops too, which are lines of the log"
    named = {*lake.files(tmp_path), *lake.files(tmp_path, table="events")}
    assert named < {str(path) for path in tmp_path.rglob("*.parquet")}
    assert lake.sweep(tmp_path, db, orphaned=timedelta(0)).removed > 0
    assert named == {str(path) for path in tmp_path.rglob("*.parquet")}
    assert in_lake(tmp_path) == more


def test_a_message_that_ends_between_export_and_drop_keeps_its_month(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db, 1, 10)

    def end_one_more(step: str, month: str, rows: int) -> None:
        if (step, month) == ("publish", DECEMBER):
            fill(db, 12, 12)

    report = export(spark, db, tmp_path, drop=True, progress=end_one_more)
    assert {each.month: each.drop for each in report.months} == {DECEMBER: "changed", JANUARY: "dropped"}
    assert archived(db) == 6
    report = export(spark, db, tmp_path, drop=True)
    assert (report.rows, report.dropped) == (1, [DECEMBER])
    assert set(in_lake(tmp_path)) == {*range(1, 11), 12}

    # A month made again by a late message has only that one; it may leave too.
    fill(db, 14, 14)
    assert export(spark, db, tmp_path, drop=True).dropped == [DECEMBER]
    assert set(in_lake(tmp_path)) == {*range(1, 11), 12, 14}


def test_a_month_with_a_live_message_is_exported_but_not_dropped(spark: SparkSession, db: str, tmp_path: Path) -> None:
    fill(db, 1, 4)
    with psycopg.connect(db) as conn:
        conn.execute("select menzil.send('partner', '{}')")
        conn.execute("update menzil.message set created_at = '2024-12-05 00:00+00' where created_at > '2026-01-01'")
    report = export(spark, db, tmp_path, drop=True)
    assert {each.month: (each.is_open, each.drop) for each in report.months} == {
        DECEMBER: (True, "open"),
        JANUARY: (False, "dropped"),
    }
    assert archived(db) == 2


def _delete(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _rot(path: Path) -> None:
    """One bit of one value, in its page."""
    content = bytearray(path.read_bytes())
    value = pyarrow.parquet.read_table(path)["payload_hash"][0].as_py().encode()
    content[content.index(value)] ^= 1
    path.write_bytes(content)


def test_damage_to_a_file_is_found_and_nothing_is_dropped(spark: SparkSession, db: str, tmp_path: Path) -> None:
    fill(db, 1, 8)
    export(spark, db, tmp_path)
    victim = Path(lake.files(tmp_path)[0])
    sound = victim.read_bytes()
    for harm in (_delete, _truncate, _rot):
        harm(victim)
        problems = lake.verify(tmp_path, spark=spark).problems
        assert len(problems) == 1
        assert victim.name in problems[0]
        with pytest.raises(LakeDamagedError, match="stays in the database"):
            export(spark, db, tmp_path, drop=True)
        assert archived(db) == 8
        victim.write_bytes(sound)
    assert lake.verify(tmp_path, spark=spark).problems == ()


def test_a_value_that_somebody_changed_by_a_commit_of_their_own_is_found_and_nothing_is_dropped(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    """Every file is whole, and the table says so; only the fingerprint knows better."""
    fill(db, 1, 8)
    export(spark, db, tmp_path)
    there = open_lake(tmp_path, db)
    tx = begun(there)
    old = of_month(there, "messages", DECEMBER)[0]
    (row,) = pyarrow.parquet.read_table(old.file_path.removeprefix("file://")).to_pylist()
    new = written(there, tx, row["channel"], [row["id"]], row["created_at"], row | {"worker": "somebody else"})
    commit.finish(there, "messages", tx, commit.data_files(tx, new, there.root), {}, [old])
    problems = lake.verify(tmp_path, db, spark=spark).problems
    told, named = problems
    assert told.split(":")[0] == f"The files of {DECEMBER} hold other rows than were exported"
    snapshot = there.tables["messages"].current_snapshot()
    assert snapshot is not None
    assert named == (
        f"{new[0].path} (1 rows) was added by snapshot {snapshot.snapshot_id}, after snapshot "
        f"{snapshot.parent_snapshot_id}, which menzil did not make."
    )
    with pytest.raises(LakeDamagedError, match="stays in the database"):
        export(spark, db, tmp_path, drop=True)
    assert archived(db) == 8


def test_until_is_exact_and_what_it_left_out_comes_later_once(spark: SparkSession, db: str, tmp_path: Path) -> None:
    fill(db, 1, 6)
    with psycopg.connect(db) as conn:  # of December there are three: one of each day
        conn.execute(
            "update menzil.message set created_at = '2024-12-01Z'::timestamptz + id * interval '1 day' "
            "where created_at < '2025-01-01Z'"
        )
    edge = datetime.fromisoformat("2024-12-05T00:00:00Z")  # when message 4 was created
    first = export(spark, db, tmp_path, until=edge, drop=True)
    assert [(each.month, each.rows, each.drop) for each in first.months] == [(DECEMBER, 1, None)]
    assert set(in_lake(tmp_path)) == {2}
    assert lake.verify(tmp_path, db, spark=spark).problems == ()
    fill(db, 7, 8)  # another that was created at the end of December
    assert export(spark, db, tmp_path, until=edge).rows == 0
    assert export(spark, db, tmp_path, until=edge + timedelta(microseconds=1)).rows == 1
    assert set(in_lake(tmp_path)) == {2, 4}
    assert lake.verify(tmp_path, db, spark=spark).problems == ()
    export(spark, db, tmp_path)
    assert in_lake(tmp_path) == in_database(db)
    assert lines_in_lake(tmp_path) == event_lines(db)
    assert export(spark, db, tmp_path, drop=True).dropped == [DECEMBER, JANUARY]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def test_a_later_run_reads_what_is_new_and_nothing_else(db: str) -> None:
    fill(db, 1, 2000)
    with psycopg.connect(db) as conn:
        (start,) = conn.execute("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    fill(db, 2001, 2010)
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("analyze menzil.message")
        conn.execute("analyze menzil.done")
        (snapshot,) = conn.execute("select pg_current_snapshot()::text").fetchone()
        month = "created_at >= '2024-12-01Z' and created_at < '2025-01-01Z'"
        with Survey(db) as survey:
            (piece,) = survey.ended([month], start, snapshot)
        for name, value in SETTINGS.items():
            conn.execute(f"set {name} = {value}")
        query = partitions.select("*", piece, [month])
        ((plan,),) = conn.execute(f"explain (analyze, format json) {query}").fetchone()
    ends = [node for node in nodes(plan["Plan"]) if node.get("Relation Name") == "done"]
    assert [(node["Node Type"], node["Index Name"]) for node in ends] == [("Index Scan", "done_feed")] * 3
    # Plain ends, those with responses and the others are read apart: each part looks at the ten new ends, and each end
    # belongs to one part.
    assert [node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in ends] == [10, 10, 10]
    assert sum(node["Actual Rows"] for node in ends) == 10
    read = [node for node in nodes(plan["Plan"]) if node.get("Relation Name", "").startswith("archive_")]
    assert {node["Relation Name"] for node in read} == {"archive_2024_12"}
    assert sum(node["Actual Loops"] for node in read) == 10, "one look for each end"
    assert plan["Plan"]["Actual Rows"] == 5


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("compiled")
def test_millions_of_messages_leave_with_a_driver_of_one_gigabyte(spark: SparkSession, db: str, tmp_path: Path) -> None:
    """Alone: pytest -m torture -k millions -s tests/spark/test_export.py; MENZIL_LAKE_ROWS says how many."""
    count = int(os.environ.get("MENZIL_LAKE_ROWS", "5000000"))
    fill(db, 1, count)
    assert spark.conf.get("spark.driver.memory") == "1g"
    told = []
    report = export(spark, db, tmp_path, drop=True, progress=lambda *step: told.append((time.monotonic(), *step)))
    print(f"\n{count:,} messages in {report.seconds:.1f} s: {count / report.seconds:,.0f} a second")
    for (began, step, month, _), (ended, *_) in itertools.pairwise(told):
        print(f"  {step} {month}: {ended - began:.1f} s")
    print(
        f"  {sum(each.files for each in report.months)} files, {sum(each.size for each in report.months) / 1e6:.0f} MB"
    )
    print(f"  JVM: {peak_memory(spark) / 1e6:.0f} MB at its peak, of which the heap has at most 1 GB")
    assert report.rows == count
    assert report.dropped == [DECEMBER, JANUARY]
    assert archived(db) == 0
    assert lake.read(spark, tmp_path).selectExpr("count(*)", "count(distinct id)", "min(id)", "max(id)").first() == (
        count, count, 1, count,
    )  # fmt: skip
    assert lake.verify(tmp_path, db, spark=spark).problems == ()


def peak_memory(spark: SparkSession) -> int:
    """The most that the JVM ever held, in bytes, as Linux counts it."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
