"""Rows of a DataFrame become messages: which column means what, what is refused beforehand, and exactly once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from menzil.model.errors import DisabledError, InvalidValueError, MenzilError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDERS = "id bigint, customer string, amount decimal(10,2), priority int"


@pytest.fixture
def conn(db: str) -> Any:
    with psycopg.connect(db, autocommit=True) as conn:
        for name in ("billing", "mail"):
            conn.execute("select menzil.channel_set(%s)", (name,))
        yield conn


@pytest.fixture
def orders(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        spark.sparkContext.parallelize([(n, f"c{n % 3}", None, n % 4) for n in range(10)], 3), ORDERS
    ).selectExpr("id", "customer", "cast(id as decimal(10,2)) / 4 as amount", "priority")


def sent(conn: psycopg.Connection[Any], columns: str = "channel, payload") -> list[tuple[Any, ...]]:
    return conn.execute(f"select {columns} from menzil.queue order by id").fetchall()


def test_columns_that_are_left_become_the_payload_and_a_second_run_sends_nothing(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any], orders: DataFrame
) -> None:
    from menzil.spark.jobs.send import plan_send, send

    said: dict[str, Any] = {"send_id": "orders-1", "endpoint": "billing", "columns": {"ordering_key": "customer"}}
    plan = plan_send(spark, orders, db, **said)
    assert (plan.rows, plan.messages, plan.refused, plan.already_sent) == (10, 10, 0, None)
    assert plan.endpoints == {"billing": 10}
    assert len(plan.sample) == 3
    assert json.loads(plan.sample[0]["payload"]).keys() == {"id", "customer", "amount"}
    assert sent(conn) == []

    report = send(spark, orders, db, **said, plan=plan)
    assert (report.messages, report.refused, report.repeated) == (10, 0, False)
    rows = sent(conn, "channel, payload, priority, ordering_key")
    assert [row[1]["id"] for row in rows] == list(range(10))
    assert rows[5] == ("billing", {"id": 5, "customer": "c2", "amount": 1.25}, 1, "c2")

    again = send(spark, orders, db, **said)
    assert (again.messages, again.repeated) == (10, True)
    assert len(sent(conn)) == 10
    assert plan_send(spark, orders, db, **said).already_sent == 10


@pytest.mark.usefixtures("compiled")
def test_every_option_of_a_message_is_a_column(spark: SparkSession, db: str, conn: psycopg.Connection[Any]) -> None:
    from menzil.spark.jobs.send import send

    frame = spark.sql("""
      select 'mail' as endpoint, named_struct('n', 1, 'deep', array(1, 2)) as body, '7' as priority,
             'k' as ordering_key, 'once' as idempotency_key, '6f9619ff-8b86-d011-b42d-00c04fc964ff' as correlation_id,
             '2999-01-01T00:00:00Z' as scheduled_at, timestamp'3000-01-01 00:00:00' as expires_at,
             map('X-Tenant', 'a') as headers, named_struct('source', 'lake') as metadata, 'not sent' as remark""")
    assert send(spark, frame, db, send_id="all", payload="body").messages == 1
    columns = (
        "channel, payload, priority, ordering_key, idempotency_key, correlation_id::text, scheduled_at::text, "
        "headers, metadata"
    )  # fmt: skip
    conn.execute("set timezone = 'UTC'")
    assert sent(conn, columns) == [
        ("mail", {"n": 1, "deep": [1, 2]}, 7, "k", "once", "6f9619ff-8b86-d011-b42d-00c04fc964ff",
         "2999-01-01 00:00:00+00", {"X-Tenant": "a"}, {"source": "lake"})
    ]  # fmt: skip


def test_json_text_keeps_every_digit_and_bytes_stay_bytes(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any]
) -> None:
    from menzil.spark.jobs.send import send

    texts = spark.createDataFrame([('{"n": 1.000000000000000000001}',)], "payload string")
    blobs = spark.createDataFrame([(bytearray(b"\x00\xff"),)], "content binary")
    send(spark, texts, db, send_id="texts", endpoint="mail")
    send(spark, blobs, db, send_id="blobs", endpoint="mail")
    assert sent(conn, "payload::text, content") == [('{"n": 1.000000000000000000001}', None), (None, b"\x00\xff")]


BAD = [
    ("billing", '{"ok": 1}', "1", None, None, None),
    (None, "{}", None, None, None, "The endpoint is missing."),
    ("nowhere", "{}", None, None, None, "There is no channel or endpoint named 'nowhere'."),
    ("closed", "{}", None, None, None, "Endpoint 'closed' is disabled and refuses messages."),
    ("billing", None, None, None, None, "The payload is missing."),
    ("billing", '{"a": ', None, None, None, "The payload is not JSON: expecting value."),
    ("billing", '{"a": NaN}', None, None, None, "The payload is not JSON: naN is no JSON number."),
    ("billing", '{"a": "\\u0000"}', None, None, None, "The payload holds a character that PostgreSQL cannot store."),
    ("billing", '{"a": "\\ud800"}', None, None, None, "The payload holds a character that PostgreSQL cannot store."),
    ("billing", json.dumps("x" * 70_000), None, None, None, "The payload has 70002 bytes, the limit is 65536."),
    ("billing", "{}", "high", None, None, "The priority is not a whole number."),
    ("billing", "{}", "11", None, None, "The priority must lie between 0 and 10."),
    ("billing", "{}", None, "", None, "The ordering key must have 1 to 1024 bytes and no NUL."),
    ("billing", "{}", None, None, "[1]", "The headers must be a JSON object."),
    ("billing", "{}", None, None, '{"a b": "c"}', "'a b' is not a header name."),
    (
        "billing",
        "{}",
        None,
        None,
        '{"X-A": "1", "x-a": "2"}',
        "A header is given twice: header names do not distinguish upper and lower case.",
    ),
    (
        "billing",
        "{}",
        None,
        None,
        '{"a": 1}',
        "The value of header 'a' must be one line of text of at most 8192 bytes.",
    ),
]


def test_what_the_engine_would_refuse_is_known_row_by_row_before_anything_is_sent(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    from menzil.spark.jobs.send import plan_send, send

    conn.execute("""select menzil.create_endpoint('closed', 'http', '{"url": "https://example.com/x"}')""")
    conn.execute("select menzil.disable_endpoint('closed')")
    conn.execute("select menzil.set_setting('max_payload_size', '65536')")
    columns = "endpoint string, payload string, priority string, ordering_key string, headers string, meant string"
    frame = spark.createDataFrame(BAD, columns)
    plan = plan_send(spark, frame, db, send_id="bad")
    assert (plan.rows, plan.messages, plan.refused) == (len(BAD), 1, len(BAD) - 1)
    assert sorted(row["problem"] for row in plan.refused_rows) == sorted(row[5] for row in BAD[1:])
    assert plan.reasons["The payload has too many bytes, the limit is 65536."] == 1

    with pytest.raises(InvalidValueError, match=f"{len(BAD) - 1} of {len(BAD)} rows would be refused") as refused:
        send(spark, frame, db, send_id="bad")
    assert "nothing was sent" in (refused.value.hint or "")
    assert sent(conn) == []

    report = send(spark, frame, db, send_id="bad", rejects=str(tmp_path / "rejects"))
    assert (report.messages, report.refused) == (1, len(BAD) - 1)
    assert sent(conn) == [("billing", {"ok": 1})]
    kept = [
        json.loads(line) for file in (tmp_path / "rejects").rglob("*.json") for line in file.read_text().splitlines()
    ]
    assert sorted(row["problem"] for row in kept) == sorted(row[5] for row in BAD[1:])


def test_what_spark_lets_pass_the_engine_takes_and_what_it_refuses_the_engine_refuses_too(
    conn: psycopg.Connection[Any],
) -> None:
    from menzil.spark.jobs.refuse import json_problem

    conn.execute("select menzil.set_setting('max_payload_size', '1024')")
    texts = [
        "{}", " [1, 2 ]\n", '"a"', "1", "null", "", "nul", "{'a': 1}", '{"a": 1,}', "01", "1.", ".5", "-", "1e5",
        "1e1100", '"\t"', '"\\x"', '"\\u12"', "[1] x", "Infinity", "1" * 1024, "1" * 1025, json.dumps(["a"] * 204),
        json.dumps(["a"] * 205, separators=(",", ":")), json.dumps({"k" * 3: "\u00e9" * 507}, ensure_ascii=False),
        json.dumps({"k" * 3: "\u00e9" * 508}, ensure_ascii=False), '{"a": 1, "a": "' + "x" * 1013 + '"}', "9" * 5000,
    ]  # fmt: skip
    for text in texts:
        try:
            conn.execute("select menzil.send('billing', %s::jsonb)", (text,))
            taken = True
        except psycopg.Error:
            taken = False
        assert (json_problem(text, 1024) is None) == taken, text[:80]


def test_a_time_that_the_engine_refuses_is_shown_in_the_plan_and_costs_no_other_row(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    from menzil.spark.jobs.send import plan_send, send

    # Go's zero time, what many tables say for "never", and the first and last that pass.
    times = ["0001-01-01 00:00:00", "9999-12-31 23:59:59", "0001-01-02 00:00:00", "9999-12-31 00:00:00"]
    rows = ", ".join(f"('{{}}', {n}, timestamp'{at}Z')" for n, at in enumerate(times))
    frame = spark.sql(f"select * from values {rows} as t (payload, priority, scheduled_at)")
    plan = plan_send(spark, frame, db, send_id="zero", endpoint="billing")
    assert plan.reasons == {"A schedule or expiry must lie in the years 1 to 9999.": 2}
    assert plan.refused_rows[0]["scheduled_at"] == datetime.min.replace(tzinfo=UTC)
    rejects = str(tmp_path / "rejects")
    assert send(spark, frame, db, send_id="zero", endpoint="billing", rejects=rejects, plan=plan).messages == 2
    assert sorted(row[0] for row in sent(conn, "priority")) == [2, 3]


def test_a_time_that_python_cannot_hold_is_a_text_in_the_plan(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    from menzil.spark.jobs.send import plan_send, send

    spark.conf.set("spark.sql.session.timeZone", "Asia/Istanbul")
    try:
        # East of Greenwich Go's zero time without a zone is a moment of the year before.
        times = ["0001-01-01 00:00:00", "+10000-01-01 00:00:00Z", "-4712-01-01 00:00:00Z", "2026-01-01 00:00:00Z"]
        rows = ", ".join(f"('{{}}', {n}, timestamp'{at}')" for n, at in enumerate(times))
        frame = spark.sql(f"select * from values {rows} as t (payload, priority, scheduled_at)")
        plan = plan_send(spark, frame, db, send_id="far", endpoint="billing")
        assert plan.reasons == {"A schedule or expiry must lie in the years 1 to 9999.": 3}
        told = [row["scheduled_at"] for row in plan.refused_rows]
        assert told[0].startswith("0000-12-31 22:0")
        assert told[1:] == ["10000-01-01 00:00:00.000000Z", "-4712-01-01 00:00:00.000000Z"]
        assert plan.sample[0]["scheduled_at"] == datetime(2026, 1, 1, tzinfo=UTC)
        rejects = str(tmp_path / "rejects")
        assert send(spark, frame, db, send_id="far", endpoint="billing", rejects=rejects, plan=plan).messages == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("empty", ["", " "])
def test_an_id_that_is_empty_is_refused_because_it_would_tell_no_run_from_another(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any], orders: DataFrame, tmp_path: Path, empty: str
) -> None:
    from menzil.spark.jobs.export import export
    from menzil.spark.jobs.fanout import fanout, plan_fanout
    from menzil.spark.jobs.replay import plan_replay, replay
    from menzil.spark.jobs.send import plan_send, send
    from menzil.spark.session import explain

    for job in (plan_send, send, plan_fanout, fanout):
        with pytest.raises(UsageError, match="The send id is empty"):
            job(spark, orders, db, send_id=empty)
    for job in (plan_replay, replay, export):
        with pytest.raises(UsageError, match="The run id is empty"):
            job(spark, dsn=db, lake=str(tmp_path), run_id=empty)
    writer = orders.selectExpr("'{}' as payload").write.format("menzil").option("dsn", db).option("endpoint", "mail")
    with pytest.raises(Exception, match="The sendId is empty") as caught:
        writer.option("sendId", empty).mode("append").save()
    assert explain(caught.value).hint == "perhaps a variable is not set"
    assert sent(conn) == []


def test_an_endpoint_that_takes_no_messages_is_refused_before_spark_reads_a_row(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any], orders: DataFrame
) -> None:
    from menzil.spark.jobs.send import plan_send

    with pytest.raises(UnknownNameError, match="named 'nowhere'"):
        plan_send(spark, orders, db, send_id="x", endpoint="nowhere")
    conn.execute("select menzil.channel_set('old'), menzil.send('old', '{}'), menzil.channel_release('old')")
    with pytest.raises(DisabledError, match="released"):
        plan_send(spark, orders, db, send_id="x", endpoint="old")


def test_a_column_that_is_not_there_is_named(spark: SparkSession, db: str, conn: Any, orders: DataFrame) -> None:
    from menzil.spark.jobs.send import plan_send

    with pytest.raises(UsageError, match="no column 'body'") as refused:
        plan_send(spark, orders, db, send_id="x", endpoint="mail", payload="body")
    assert "id, customer, amount, priority" in (refused.value.hint or "")
    with pytest.raises(UsageError, match="Which endpoint"):
        plan_send(spark, orders, db, send_id="x")
    with pytest.raises(UsageError, match="no 'colour'"):
        plan_send(spark, orders, db, send_id="x", endpoint="mail", columns={"colour": "id"})


def test_a_send_that_does_not_fit_is_refused_whole_and_its_id_can_be_used_again(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any], orders: DataFrame
) -> None:
    from menzil.spark.jobs.send import send

    conn.execute("select menzil.channel_set('billing', p_max_size => 9)")
    with pytest.raises(MenzilError, match="is full: 10 more on top of 0 messages") as refused:
        send(spark, orders, db, send_id="big", endpoint="billing")
    assert "\n" not in refused.value.message
    assert sent(conn) == []
    conn.execute("select menzil.channel_set('billing', p_max_size => 10)")
    assert send(spark, orders, db, send_id="big", endpoint="billing").messages == 10
