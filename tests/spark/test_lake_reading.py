"""What readers of a lake find: one message's story, columns made of payloads, and every value in every engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars
import psycopg
import pyarrow
import pyarrow.parquet
import pytest
from psycopg.types.json import Jsonb
from pyspark.sql import SparkSession

from menzil.model.errors import UnknownNameError, UsageError
from menzil.spark import lake
from menzil.spark.jobs import export_step
from menzil.spark.jobs.export import export
from menzil.spark.lake.promote import Promoted, promoted, without_column
from menzil.spark.lake.read import data_files
from menzil.spark.lake.table import open_lake
from tests.integration.lake.engines import duck
from tests.spark.lake_history import DECEMBER, event_lines, fill, in_database, in_lake, lines_in_lake
from tests.sql.queue import Queue

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "who": {"type": "string"},
        "paid": {"type": "boolean"},
        "at": {"type": "string", "format": "date-time"},
        "tag": {"type": "string"},
        "Tag": {"type": "string"},
        "odd name": {"type": "string"},
        "lines": {"type": "array"},
        "any": {"type": ["string", "integer"]},
        "of": {"enum": [1, 2]},
        "never": False,
    },
}


def test_the_scalar_fields_of_a_schema_get_a_column_and_a_column_keeps_its_type() -> None:
    first = promoted("order", SCHEMA, [])
    assert [(each.column, each.type) for each in first] == [
        ("p_amount", "bigint"),
        ("p_price", "double"),
        ("p_who", "string"),
        ("p_paid", "boolean"),
        ("p_at", "timestamp"),
    ]
    assert promoted("order", SCHEMA, first) == []
    later = {"properties": {"amount": {"type": "string"}, "new": {"type": "boolean"}}}
    assert promoted("order", later, first) == [Promoted("order", "new", "p_new", "boolean")]
    assert promoted("refund", later, first)[0] == Promoted("refund", "amount", "p_amount", "bigint")
    assert promoted("order", True, []) == []
    assert without_column("order", SCHEMA, first) == ["tag", "Tag", "odd name", "lines", "any", "of", "never"]
    assert without_column("order", later, promoted("order", later, first) + first) == []
    assert without_column("refund", True, first) == []


def publish(queue: Queue, event_type: str, payload: dict[str, Any]) -> None:
    queue.call("publish", event_type, Jsonb(payload))
    (message,) = queue.dequeue()
    queue.complete(message)


@pytest.fixture
def queue(db: str) -> Iterator[Queue]:
    with psycopg.connect(db, autocommit=True) as conn:
        yield Queue(conn)


def in_duckdb(place: Path) -> pyarrow.Table:
    """As docs/reference/lake.md says it: nothing of ours, and no catalog."""
    metadata = open_lake(place).tables["messages"].metadata_location
    return duck().sql(f"select * from iceberg_scan('{metadata}')").to_arrow_table()


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_fields_become_columns_that_every_tool_reads_and_values_that_do_not_fit_are_null(
    spark: SparkSession, db: str, queue: Queue, tmp_path: Path
) -> None:
    queue.call("channel_set", "shop")
    for name in ("order", "note"):
        queue.call("create_event_type", name)
        queue.call("subscribe", name, "shop")
    publish(queue, "order", {"amount": 1})
    export(spark, db, tmp_path)  # the columns come later, and this file has none of them
    with pytest.raises(UnknownNameError, match="has no schema"):
        export(spark, db, tmp_path, promote=["order"])
    with pytest.raises(UnknownNameError, match="no event type"):
        export(spark, db, tmp_path, promote=["ordre"])
    queue.call("create_event_type", "note", None, Jsonb({"properties": {"any": SCHEMA["properties"]["any"]}}))
    with pytest.raises(UsageError, match="No field of the event type 'note' can become a column"):
        export(spark, db, tmp_path, promote=["note"])
    queue.call("create_event_type", "order", None, Jsonb(SCHEMA))
    assert export(spark, db, tmp_path, promote=["order"]).rows == 0  # nothing is new, and the lake remembers it
    assert len(open_lake(tmp_path).memory("messages").promoted) == 5
    assert "p_amount" in lake.read(spark, tmp_path).columns
    publish(
        queue, "order", {"amount": 5, "price": 0.1, "who": "é\n", "paid": True, "at": "2025-02-03T04:05:06.7+01:00"}
    )
    publish(queue, "order", {"amount": 5.0, "price": 7})
    publish(queue, "order", {"amount": 10**30, "price": None, "who": ""})
    # Beyond a double, and after the last time that Python can tell: it would fail on every row of the column.
    for price, at in ((10**400, "9999-12-31T23:59:59-18:00"), (-(10**400), "0000-06-01T00:00:00Z")):
        publish(queue, "order", {"price": price, "at": at})
    publish(queue, "order", {"price": 1e308, "at": "9999-12-31T23:59:59.999999Z"})
    publish(queue, "note", {"amount": 3, "who": "not an order"})
    report = export(spark, db, tmp_path, promote=["order"])
    left = ["tag", "Tag", "odd name", "lines", "any", "of", "never"]
    assert sorted(report.without_column) == sorted(f"order.{name}" for name in left)
    # From now on without being asked, by a schema that says something else of a field and has one more.
    queue.call("create_event_type", "order", None, Jsonb({"properties": {"more": {"type": "integer"}}}))
    publish(queue, "order", {"amount": "six", "price": [1], "who": 7, "paid": "true", "at": "yesterday", "more": 9})
    assert export(spark, db, tmp_path).without_column == ()

    at = datetime(2025, 2, 3, 3, 5, 6, 700000, tzinfo=UTC)
    expected = [
        (None, None, None, None, None, None),
        (5, 0.1, "é\n", True, at, None),
        (5, 7.0, None, None, None, None),
        (None, None, "", None, None, None),
        (None, None, None, None, None, None),
        (None, None, None, None, None, None),
        (None, 1e308, None, None, datetime.max.replace(tzinfo=UTC), None),
        (None, None, None, None, None, None),
        (None, None, None, None, None, 9),
    ]
    columns = ["p_amount", "p_price", "p_who", "p_paid", "p_at", "p_more"]
    table = open_lake(tmp_path).tables["messages"]
    frames = {
        "menzil": lake.read(spark, tmp_path).toArrow(),
        "pyiceberg": table.scan().to_arrow(),
        "polars": polars.scan_iceberg(table).collect().to_arrow(),
        "duckdb": in_duckdb(tmp_path),
    }
    for tool, table in frames.items():
        rows = sorted(table.to_pylist(), key=lambda row: row["id"])
        assert [tuple(row[name] for name in columns) for row in rows] == expected, tool
        assert json.loads(rows[-1]["payload"])["amount"] == "six"

    lake.compact(spark, tmp_path, db)
    (table,) = [pyarrow.parquet.read_table(path, partitioning=None) for path in lake.files(tmp_path)]
    rows = sorted(table.to_pylist(), key=lambda row: row["id"])
    assert [tuple(row[name] for name in columns) for row in rows] == expected
    assert lake.verify(tmp_path, db, spark=spark).problems == ()


@pytest.mark.slow
def test_the_story_of_a_message_is_one_query_dead_letters_and_redrives_included(
    spark: SparkSession, db: str, queue: Queue, tmp_path: Path
) -> None:
    queue.call("channel_set", "work")
    dead = queue.send("work", {"n": 1})
    queue.defer(queue.lease())
    queue.fail(queue.lease(), "[PERMANENT] gone")
    again = queue.call("redrive_message", queue.one("select id from menzil.dlq"))
    queue.complete(queue.lease())
    export(spark, db, tmp_path)
    story = lake.read(spark, tmp_path).where(f"{dead} in (id, redrive_of)").orderBy("id").collect()
    told = [(row["id"], row["status"], [(t["outcome"], t["error"]) for t in row["attempts"]]) for row in story]
    assert told == [
        (dead, "failed", [("deferred", None), ("failed", "[PERMANENT] gone")]),
        (again, "completed", [("completed", None)]),
    ]
    assert lines_in_lake(tmp_path) == event_lines(db)


@pytest.mark.slow
def test_a_lake_is_parted_by_hash_when_channels_are_too_many_and_reads_prune_either_way(
    spark: SparkSession, db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 1, 20)
    export(spark, db, tmp_path)
    monkeypatch.setattr(export_step, "MANY", 3)
    fill(db, 21, 60)
    export(spark, db, tmp_path)
    table = open_lake(tmp_path, db).tables["messages"]
    assert [field.name for field in table.spec().fields] == ["created_month", "channel_bucket"]
    assert {len(file.partition) for file in data_files(open_lake(tmp_path), "messages")} == {2}
    assert in_lake(tmp_path, spark) == in_lake(tmp_path) == in_database(db)
    assert lake.verify(tmp_path, db, spark=spark).problems == ()
    expected = in_database(db)
    for channel in {row["channel"] for row in expected.values()}:
        found = lake.read(spark, tmp_path, months=[DECEMBER], channels=[channel])
        ids = {row.id for row in found.select("id").collect()}
        assert ids == {number for number, row in expected.items() if number % 2 == 0 and row["channel"] == channel}
        assert len(found.inputFiles()) < len(lake.files(tmp_path)) / 2
    lake.compact(spark, tmp_path, db)
    assert in_lake(tmp_path) == expected
