"""What readers of a lake find: one message's story, columns made of payloads, and nothing half in a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from psycopg.types.json import Jsonb
from pyspark.sql import SparkSession

from menzil.model.errors import UnknownNameError
from menzil.spark import lake
from menzil.spark.jobs.export import export
from menzil.spark.lake.promote import Promoted, promoted
from menzil.spark.source.relations import RELATIONS
from tests.spark.lake_history import DECEMBER, event_lines, fill, in_database, lines_in_lake
from tests.sql.queue import Queue

SCHEMA = {
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


def publish(queue: Queue, event_type: str, payload: dict[str, Any]) -> None:
    queue.call("publish", event_type, Jsonb(payload))
    (message,) = queue.dequeue()
    queue.complete(message)


@pytest.fixture
def queue(db: str) -> Iterator[Queue]:
    with psycopg.connect(db, autocommit=True) as conn:
        yield Queue(conn)


def in_duckdb(place: Path) -> pyarrow.Table:
    """As docs/reference/lake.md says it."""
    files = f"read_parquet('{place}/data/**/*.parquet', hive_partitioning = true, union_by_name = true)"
    with duckdb.connect(config={"threads": 1}) as conn:
        return conn.sql(f"select * from {files}").to_arrow_table()


@pytest.mark.slow
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
    queue.call("create_event_type", "order", None, Jsonb(SCHEMA))
    publish(
        queue, "order", {"amount": 5, "price": 0.1, "who": "é\n", "paid": True, "at": "2025-02-03T04:05:06.7+01:00"}
    )
    publish(queue, "order", {"amount": 5.0, "price": 7})
    publish(queue, "order", {"amount": 10**30, "price": None, "who": ""})
    publish(queue, "note", {"amount": 3, "who": "not an order"})
    export(spark, db, tmp_path, promote=["order"])
    # From now on without being asked, by a schema that says something else of a field and has one more.
    queue.call("create_event_type", "order", None, Jsonb({"properties": {"more": {"type": "integer"}}}))
    publish(queue, "order", {"amount": "six", "price": [1], "who": 7, "paid": "true", "at": "yesterday", "more": 9})
    export(spark, db, tmp_path)

    at = datetime(2025, 2, 3, 3, 5, 6, 700000, tzinfo=UTC)
    expected = [
        (None, None, None, None, None, None),
        (5, 0.1, "é\n", True, at, None),
        (5, 7.0, None, None, None, None),
        (None, None, "", None, None, None),
        (None, None, None, None, None, None),
        (None, None, None, None, None, 9),
    ]
    columns = ["p_amount", "p_price", "p_who", "p_paid", "p_at", "p_more"]
    paths = lake.files(tmp_path)
    whole = pyarrow.unify_schemas([pyarrow.parquet.read_schema(path) for path in paths])
    frames = {
        "menzil": lake.read(spark, tmp_path).toArrow(),
        "spark": spark.read.option("mergeSchema", True).parquet(str(tmp_path / "data")).toArrow(),
        "pyarrow": pyarrow.dataset.dataset(paths, schema=whole).to_table(),
        "duckdb": in_duckdb(tmp_path),
    }
    for tool, table in frames.items():
        rows = sorted(table.to_pylist(), key=lambda row: row["id"])
        assert [tuple(row[name] for name in columns) for row in rows] == expected, tool
        assert json.loads(rows[-1]["payload"])["amount"] == "six"
    assert frames["pyarrow"].to_pandas().sort_values("id")["p_who"].tolist()[1] == "é\n"

    lake.compact(spark, tmp_path)
    (table,) = [pyarrow.parquet.read_table(path, partitioning=None) for path in lake.files(tmp_path)]
    rows = sorted(table.to_pylist(), key=lambda row: row["id"])
    assert [tuple(row[name] for name in columns) for row in rows] == expected
    assert lake.verify(tmp_path, db, spark=spark).problems == ()


def test_duckdb_reads_every_value_with_nothing_of_ours(spark: SparkSession, db: str, tmp_path: Path) -> None:
    fill(db)
    export(spark, db, tmp_path)
    names = [column.name for column in RELATIONS["archive"].columns]
    found = {row["id"]: row for row in in_duckdb(tmp_path).to_pylist()}
    expected = in_database(db)
    assert found.keys() == expected.keys()
    for number, message in expected.items():
        assert {name: found[number][name] for name in names} == {name: message[name] for name in names}
        assert [tuple(attempt.values()) for attempt in found[number]["attempts"]] == message["attempts"]


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
    assert lines_in_lake(spark, tmp_path) == event_lines(db)


@pytest.mark.slow
def test_a_reader_of_the_directory_sees_whole_verified_files_and_the_manifests_are_plain_json(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    seen: list[tuple[str, set[str]]] = []

    def look(step: str, month: str, rows: int) -> None:
        """What somebody who lists the directory would read at this moment."""
        paths = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
        assert all(pyarrow.parquet.read_metadata(path).num_rows > 0 for path in paths)
        seen.append((step, {str(path) for path in paths}))

    fill(db, 1, 6)
    export(spark, db, tmp_path, months=[DECEMBER], progress=look)
    named = set(lake.files(tmp_path))
    assert [names for step, names in seen[: [step for step, _ in seen].index("move")]] == [set()] * 4
    assert all(names <= named for _, names in seen)
    assert {step for step, names in seen if names and names != named} <= {"move"}

    # The recipe of docs/reference/lake.md: which files count, without menzil.
    count: set[str] = set()
    for path in sorted((tmp_path / "_manifest").glob("[0-9]*.json")):
        manifest = json.loads(path.read_text())
        if manifest["table"] == "messages":
            count = (count - set(manifest["replaces"])) | {file["path"] for file in manifest["files"]}
    assert sorted(f"{tmp_path}/{path}" for path in count) == lake.files(tmp_path)
