"""What the columns of a frame are to a message, and how their values are written: without Spark, without a database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import types

from menzil.model.errors import InvalidValueError, UsageError
from menzil.spark.source import options
from menzil.spark.source.columns import Shape, shape_of
from menzil.spark.source.json_text import json_text
from menzil.spark.source.staging import staged

KINDS = {
    "string": types.StringType(), "binary": types.BinaryType(), "bigint": types.LongType(), "int": types.IntegerType(),
    "double": types.DoubleType(), "date": types.DateType(), "timestamp_ntz": types.TimestampNTZType(),
    "struct": types.StructType([types.StructField("a", types.DoubleType())]),
}  # fmt: skip


def shape(columns: str, **options: str) -> Shape:
    fields = [column.split() for column in columns.split(", ")]
    return shape_of(types.StructType([types.StructField(name, KINDS[kind]) for name, kind in fields]), options)


def test_names_have_no_case_and_a_channel_is_an_endpoint() -> None:
    made = shape("PAYLOAD string, Channel string, Priority bigint")
    assert [(source.word, source.index) for source in made.sources] == [
        ("payload", 0),
        ("endpoint", 1),
        ("priority", 2),
    ]


def test_a_binary_payload_is_content() -> None:
    (source,) = shape("payload binary", endpoint="work").sources
    assert (source.word, source.nested) == ("content", False)


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("payload string, colour string", "A message has no 'colour'"),
        ("payload string, id bigint", "A message has no 'id'"),
        ("priority int", "There is no column for the payload"),
        ("payload double", "The column payload is double, it must be a string or a struct, map or array or binary."),
        ("payload string, priority string", "The column priority is string, it must be a whole number."),
        ("payload string, scheduled_at timestamp_ntz", "it must be a timestamp with time zone"),
        ("payload string, expires_at date", "it must be a timestamp with time zone"),
        ("payload string, headers int", "The column headers is int"),
        ("payload binary, content binary", "Two columns say what the content is."),
        ("payload string, endpoint string", "The endpoint is given twice"),
    ],
)
def test_a_frame_that_cannot_be_sent_is_refused_in_a_sentence(ddl: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")) as refused:
        shape(ddl, endpoint="work")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("known", "given", "near"),
    [
        (options.WRITE, "send_id", "sendId"),
        (options.WRITE, "endpiont", "endpoint"),
        (options.READ, "num_partitions", "numPartitions"),
        (options.READ_STREAM, "startingOffset", "startingOffsets"),
        (options.READ_STREAM, "fail-on-data-loss", "failOnDataLoss"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(known: tuple[str, ...], given: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"There is no option '{given}' here") as refused:
        options.must_be_known({"dsn": "x", given: "1"}, known)
    assert f"did you mean {near}?" in str(refused.value.hint)
    options.must_be_known({name.lower(): "1" for name in known}, known)
    options.must_be_known({name.upper(): "1" for name in known}, known)


def test_a_path_is_refused_where_there_are_no_files() -> None:
    with pytest.raises(UsageError, match="takes no path"):
        options.must_be_known({"path": "orders"}, options.READ)


def test_without_an_endpoint_there_is_a_question() -> None:
    with pytest.raises(UsageError, match=r"Which endpoint\?"):
        shape("payload string")


def test_nested_values_are_written_as_json_without_their_nulls() -> None:
    kind = pa.struct(
        [
            ("a", pa.int64()), ("text", pa.string()), ("at", pa.timestamp("us", "UTC")),
            ("money", pa.decimal128(30, 2)),
            ("list", pa.list_(pa.int32())), ("map", pa.map_(pa.string(), pa.bool_())), ("raw", pa.binary()),
        ]
    )  # fmt: skip
    values = [
        {
            "a": None, "text": 'quo"te\n é', "at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
            "money": Decimal("12345678901234567890.10"), "list": [1, None], "map": [("k", True), ("n", None)],
            "raw": b"\x00",
        },
        None,
        dict.fromkeys(["a", "text", "at", "money", "list", "map", "raw"]) | {"a": 1},
    ]  # fmt: skip
    first, second, third = json_text(pa.array(values, kind)).to_pylist()
    assert "12345678901234567890.10" in first
    assert json.loads(first) == {
        "text": 'quo"te\n é', "at": "2026-01-02T03:04:05.000006Z", "money": pytest.approx(1.23456789e19),
        "list": [1, None], "map": {"k": True, "n": None}, "raw": "AA==",
    }  # fmt: skip
    assert (second, third) == (None, '{"a":1}')


def test_a_number_that_is_none_is_refused() -> None:
    batch = pa.record_batch([pa.array([{"a": float("nan")}])], names=["payload"])
    with pytest.raises(InvalidValueError, match="A value of payload cannot be sent: nan is no number of JSON"):
        staged(shape("payload struct", endpoint="work"), batch, "t", 0)


def test_rows_get_their_token_number_and_endpoint() -> None:
    batch = pa.record_batch([pa.array(["1", "2"]), pa.array([1, None], pa.int64())], names=["payload", "priority"])
    made = staged(shape("payload string, priority bigint", endpoint="work"), batch, "t", 5)
    assert made.to_pylist() == [
        {"token": "t", "n": 5, "payload": "1", "priority": 1, "endpoint": "work"},
        {"token": "t", "n": 6, "payload": "2", "priority": None, "endpoint": "work"},
    ]


def test_a_priority_no_integer_holds_is_refused() -> None:
    batch = pa.record_batch([pa.array(["1"]), pa.array([1 << 40])], names=["payload", "priority"])
    with pytest.raises(InvalidValueError, match="A value of priority cannot be sent"):
        staged(shape("payload string, priority bigint", endpoint="work"), batch, "t", 0)
