"""A table of events goes to whoever has subscribed, as publish would send them, and once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from menzil.model.errors import InvalidValueError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = '{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 1}}}'

FILTERS: list[tuple[str, str | None]] = [
    ("everything", None),
    ("turkey", '{"address": {"country": "TR"}}'),
    ("turkey", '{"tags": ["vip"]}'),
    ("round", '{"amount": 100}'),
    ("tagged", '{"tags": []}'),
    ("objects", "{}"),
    ("closed", None),
]


def event(n: int) -> str:
    """One of several kinds; amounts are written in two ways, tags come in any order, every 13th is no object."""
    if n % 13 == 12:
        return json.dumps([n])
    body = {"id": n, "address": {"country": ("TR", "DE", "FR")[n % 3]}, "amount": (100, 100.0, 99.5, None)[n % 4]}
    if n % 2:
        body["tags"] = ["new", "vip"] if n % 5 == 0 else ["new"]
    return json.dumps(body)


@pytest.fixture
def conn(db: str) -> Any:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("""select menzil.create_endpoint('closed', 'http', '{"url": "https://example.com/x"}')""")
        conn.execute("select menzil.create_event_type('order.paid'), menzil.create_event_type('order.lost')")
        conn.execute("select menzil.create_event_type('strict', null, %s)", (SCHEMA,))
        for endpoint, wanted in FILTERS:
            if endpoint != "closed":
                conn.execute("select menzil.channel_set(%s)", (endpoint,))
            conn.execute("select menzil.subscribe('order.paid', %s, %s)", (endpoint, wanted))
        conn.execute("select menzil.subscribe('order.lost', 'round'), menzil.subscribe('strict', 'round')")
        conn.execute("select menzil.disable_endpoint('closed')")
        yield conn


def copies(conn: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    found = "select channel, payload::text, metadata::text, ordering_key, priority from menzil.queue"
    return sorted(conn.execute(found).fetchall(), key=repr)


@pytest.mark.usefixtures("compiled")
def test_a_fan_out_makes_the_messages_that_publish_makes_and_makes_them_once(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any]
) -> None:
    from menzil.spark.jobs.fanout import copies as sent_copies
    from menzil.spark.jobs.fanout import fan, fanout, plan_fanout

    rows = [
        ("order.lost" if n % 10 == 9 else "order.paid", event(n), f"k{n % 3}", n % 11, '{"n": 1.10}' if n % 2 else None)
        for n in range(120)
    ]
    for row in rows:
        conn.execute("""select menzil.publish(%s, %s, p_ordering_key := %s, p_priority := %s, p_metadata := %s)""", row)
    published = copies(conn)
    conn.execute("select menzil.channel_purge(name) from menzil.channels")
    assert copies(conn) == []

    columns = "event_type string, payload string, ordering_key string, priority int, metadata string"
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 3), columns)
    plan = plan_fanout(spark, frame, db, send_id="f")
    assert (plan.events, plan.messages, plan.refused, plan.subscriptions) == (120, len(published), 0, 7)
    assert copies(conn) == []
    # Two functions look at each event, once each: Spark likes to copy them, and then it takes twice as long.
    planned = sent_copies(fan(frame, db).events)._jdf.queryExecution().executedPlan().toString()
    assert planned.count("ArrowEvalPython") == 2
    report = fanout(spark, frame, db, send_id="f", plan=plan)
    assert (report.messages, report.repeated) == (len(published), False)
    assert copies(conn) == published
    assert {row[0] for row in published} == {"everything", "turkey", "round", "tagged", "objects"}
    assert fanout(spark, frame, db, send_id="f").repeated
    assert len(copies(conn)) == len(published)


def test_events_that_break_their_schema_or_have_no_type_are_refused_row_by_row(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    from menzil.spark.jobs.fanout import fanout, plan_fanout

    good = [("strict", json.dumps({"id": n})) for n in range(1, 30)]
    bad = [
        ("strict", '{"id": 0}'),
        ("strict", "{}"),
        ("strict", None),
        ("unknown", "{}"),
        (None, "{}"),
        ("strict", "{"),
    ]
    frame = spark.createDataFrame([*good, *bad], "event_type string, payload string")
    plan = plan_fanout(spark, frame, db, send_id="s")
    assert (plan.events, plan.messages, plan.refused) == (35, 29, 6)
    assert set(plan.reasons) == {
        "The payload of event 'strict' breaks the rule minimum 1 at \"/id\".",
        'The payload of event \'strict\' breaks the rule required "id" at "".',
        "The payload is missing.",
        "There is no event type named 'unknown'.",
        "The event type is missing.",
        "The payload is not JSON: expecting property name enclosed in double quotes.",
    }
    with pytest.raises(InvalidValueError, match="6 of 35 events would be refused"):
        fanout(spark, frame, db, send_id="s", plan=plan)
    assert copies(conn) == []
    report = fanout(spark, frame, db, send_id="s", plan=plan, rejects=str(tmp_path / "rejects"))
    assert (report.messages, report.refused) == (29, 6)
    kept = [
        json.loads(line) for file in (tmp_path / "rejects").rglob("*.json") for line in file.read_text().splitlines()
    ]
    assert sorted(map(str, [row.get("problem") for row in kept])) == sorted(plan.reasons)


def test_an_event_type_that_is_not_there_and_bytes_are_refused_at_once(
    spark: SparkSession, db: str, conn: psycopg.Connection[Any]
) -> None:
    from menzil.spark.jobs.fanout import plan_fanout

    with pytest.raises(UnknownNameError, match="named 'nothing'"):
        plan_fanout(spark, spark.sql("select '{}' as payload"), db, send_id="x", event_type="nothing")
    with pytest.raises(UsageError, match="not bytes"):
        plan_fanout(spark, spark.sql("select X'00' as payload"), db, send_id="x", event_type="order.paid")
    with pytest.raises(UsageError, match="Which event type"):
        plan_fanout(spark, spark.sql("select '{}' as payload"), db, send_id="x")


def test_bad_events_are_found_by_halving() -> None:
    from menzil.spark.jobs.events import broken

    asked = []

    def ask(payloads: list[str]) -> str | None:
        asked.append(len(payloads))
        return "bad" if "x" in payloads else None

    payloads = ["x" if n in (3, 60) else "ok" for n in range(64)]
    assert list(broken(ask, payloads, list(range(64)))) == [(3, "bad"), (60, "bad")]
    assert len(asked) < 30
