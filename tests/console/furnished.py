"""A queue with something of everything, made by functions that users call; only the history by minute is written."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import psycopg

from menzil import Fail, Menzil, Message

#: A text that would leave its place on a page, turn a line round, and run as a script, if anything let it.
HOSTILE = "</script><img src=x onerror=alert(1)>\u202egnp.exe \x1b[31m {{7*7}} ' \" &amp;"
#: Digits that no float holds.
EXACT = "12345678901234567890.123456789012345678901234567890"
SECRET = "hunter2-is-no-password"


@dataclass
class Furnished:
    """Ids of messages that tests look at."""

    waiting: int = 0
    in_flight: int = 0
    completed: int = 0
    dead: int = 0
    redriven: int = 0
    retrying: int = 0
    behind_key: int = 0
    scheduled: int = 0
    hostile: int = 0
    exact: int = 0
    binary: int = 0
    plan: int = 0
    cause: str = ""
    ids: list[int] = field(default_factory=list)


def furnish(dsn: str, *, history: bool = True) -> Furnished:
    """Fill a database that has menzil installed."""
    found = Furnished()
    with Menzil(dsn) as mq, psycopg.connect(dsn, autocommit=True) as conn:
        _channels(mq, conn)
        _workers(conn)
        _lives(mq, found)
        _waiting(mq, conn, found)
        _plans(conn, found)
        if history:
            _history(conn)
    return found


def _channels(mq: Menzil, conn: psycopg.Connection) -> None:
    mq.channel_set("billing", max_concurrency=5)
    mq.channel_set("mail", release_interval=60, release_count=30)
    mq.channel_set("imports", max_concurrency=2, on_dead="block")
    mq.channel_set("reports")
    mq.channel_set("audit/trail \u202eodd <name>")
    mq.channel_set("thumbnails", max_size=50_000)
    policy = {"max_retries": 4, "backoff": "exponential", "base_delay_seconds": 30}
    hook = {"url": "https://hooks.example.com/orders", "signing": {"secret": "whsec_" + "MfKQ9r8GKYqrTwjU" * 2}}
    mq.create_endpoint("crm", "http", hook | {"headers": {"Authorization": "Bearer abc", "X-Team": "sales"}})
    mq.create_endpoint("warehouse", "http", {"url": "https://wms.example.com/in"})
    mq.create_endpoint("slack", "http", {"url": "https://chat.example.com/hook"})
    mq.set_retry_policy("crm", policy)
    mq.create_event_type("order.paid", "An order was paid.", schema={"type": "object", "required": ["order"]})
    mq.subscribe("order.paid", "crm")
    mq.subscribe("order.paid", "warehouse", filter={"country": "NL"})
    mq.schedule_create("nightly-report", "0 3 * * *", "reports", {"kind": "daily"}, time_zone="Europe/Istanbul")
    # Not due while tests run: its message would be the first of its channel.
    mq.schedule_create("tick", "0 0 29 2 *", "imports", {"kind": "tick"})
    # A paused one: a bridge that no process runs would be a finding of the health check.
    config = '{"host": "valkey.internal", "stream": "orders", "start": "earliest", "auth": {"password": "bridge-word"}}'
    conn.execute("select menzil.bridge_create('orders', 'redis', %s::jsonb, 'imports')", (config,))
    conn.execute("select menzil.bridge_begin('orders', 'orders', '0-0'), menzil.bridge_pause('orders')")


def _workers(conn: psycopg.Connection) -> None:
    hello = "select menzil.worker_hello(%s, %s, %s, %s, %s, %s)"
    conn.execute(hello, ("web-1/4711", "web-1.example", 4711, "0.2.0", None, 100))
    conn.execute(hello, ("batch-1/99", "batch-1.example", 99, "0.2.0", ["billing", "mail", "imports"], 10))
    conn.execute(hello, ("batch-2/100", "batch-2.example", 100, "0.1.9", ["billing"], 10))
    conn.execute("select menzil.worker_heartbeat('web-1/4711', 3, 120834, 211)")
    conn.execute("select menzil.worker_heartbeat('batch-1/99', 7, 55021, 98)")
    conn.execute("update menzil.worker set heartbeat_at = now() - interval '4 min' where name = 'batch-2/100'")


def _take(mq: Menzil, channel: str, worker: str = "batch-1/99", limit: int = 1, lease: int = 600) -> list[Message]:
    return mq.dequeue(limit, lease, [channel], worker=worker)


def _lives(mq: Menzil, found: Furnished) -> None:
    dice = random.Random(7)
    for number in range(40):
        mq.send("reports", {"report": number, "rows": dice.randrange(10_000)}, priority=number % 3)
    for message in _take(mq, "reports", limit=40):
        mq.complete(message)
        found.completed = message.id
    causes = ["HTTP 503 from hooks.example.com", "connect timed out after 10 s", "HTTP 410 Gone: endpoint moved"]
    for number in range(24):
        mq.send("crm", {"order": number, "token": SECRET, "customer": {"email": f"c{number}@example.com"}})
    for number, message in enumerate(_take(mq, "crm", "web-1/4711", 24)):
        mq.fail(message, f"{causes[number % 3]} password={SECRET}", permanent=number % 4 != 0)
        found.dead = message.id if number % 4 else found.dead
    found.redriven = mq.redrive_message(1)
    found.exact = mq.send("thumbnails", {"a": 1})
    key = mq.send("imports", {"file": "a.csv"}, ordering_key="tenant-7")
    found.behind_key = mq.send("imports", {"file": "b.csv"}, ordering_key="tenant-7")
    for message in _take(mq, "imports", limit=1):
        mq.fail(message, "ValueError: bad row 17", permanent=True)
    found.ids.append(key)
    found.retrying = mq.send("warehouse", {"pick": 1}, metadata={"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"})
    for message in _take(mq, "warehouse", "web-1/4711"):
        answer = {"status": 500, "duration_ms": 31, "body": "out of shelves"}
        mq.fail_many([(message, Fail("HTTP 500 from wms.example.com: boom", response=answer))])


def _waiting(mq: Menzil, conn: psycopg.Connection, found: Furnished) -> None:
    for priority, many in ((0, 600), (3, 80), (9, 12)):
        mq.send_batch("billing", [{"invoice": number, "cents": number * 7} for number in range(many)], priority)
    for message in _take(mq, "billing", limit=5):
        found.in_flight = message.id
    mq.send_batch("mail", [{"to": f"u{number}@example.com"} for number in range(130)])
    for message in _take(mq, "mail", limit=30):
        mq.complete(message)
    mq.send_batch("slack", [{"text": f"hello {number}"} for number in range(20)])
    found.waiting = mq.send(
        "reports", {"report": "pending", "password": SECRET}, correlation_id="6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11"
    )
    found.scheduled = mq.send("reports", {"report": "later"}, delay=7200)
    found.hostile = mq.send(
        "audit/trail \u202eodd <name>", {HOSTILE.replace("\x00", ""): HOSTILE}, ordering_key=HOSTILE
    )
    raw = conn.execute("select menzil.message_create('thumbnails', p_content => %s)", (bytes(range(256)),)).fetchone()
    assert raw is not None
    found.binary = raw[0]
    with conn.transaction():
        row = conn.execute(
            "select menzil.send('thumbnails', %s::jsonb)",
            (f'{{"amount": {EXACT}, "n": 1e3, "big": 9007199254740993}}',),
        ).fetchone()
        assert row is not None
        found.exact = row[0]
    mq.channel_pause("thumbnails")
    mq.disable_endpoint("slack")


def _plans(conn: psycopg.Connection, found: Furnished) -> None:
    row = conn.execute(
        """select menzil.plan_create('redrive', '{"endpoint": "crm"}', 5, 'after the outage')"""
    ).fetchone()
    cause = conn.execute("select cause_hash from menzil.dlq where original_message_id = %s", (found.dead,)).fetchone()
    assert row is not None
    assert cause is not None
    found.plan, found.cause = row[0], cause[0]


_COPY = """
copy menzil.pulse_minute (channel_id, at, waiting, in_flight, oldest_s, sent, completed, failed_tries, dead, ended_ms,
  try_ms)
from stdin"""


def _history(conn: psycopg.Connection) -> None:
    """48 hours by the minute, as the job pulse would have written them."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    ids: dict[str, int] = dict(conn.execute("select name, id from menzil.channel").fetchall())
    dice = random.Random(11)
    rows = []
    for name, base in (("billing", 40), ("mail", 25), ("crm", 14), ("reports", 8), ("warehouse", 5), (None, 92)):
        waiting = 30.0
        for minute in range(48 * 60, 0, -1):
            at = now - timedelta(minutes=minute)
            wave = 1 + 0.6 * math.sin((at.hour * 60 + at.minute) / 1440 * 2 * math.pi - 1.8)
            sent = max(int(base * wave * dice.uniform(0.7, 1.3)), 0)
            trouble = 90 < minute < 130 or 1400 < minute < 1425
            done = int(sent * (0.35 if trouble else 1.0) + min(waiting, base * 0.4) * (0.1 if trouble else 0.9))
            waiting = max(waiting + sent - done, 0)
            failed = int(done * (0.5 if trouble else 0.015) + dice.random())
            spread = (
                [0, 6, 30, 40, 12, 8, 3, 1, 0, 0, 0, 0] if not trouble else [0, 0, 4, 10, 12, 20, 30, 15, 6, 3, 0, 0]
            )
            ended = [done * part // 100 for part in spread]
            rows.append(
                (
                    ids[name] if name else 0,
                    at,
                    int(waiting),
                    min(int(waiting / 9) + 1, base),
                    waiting / base * (30 if trouble else 4),
                    sent,
                    done,
                    failed,
                    failed // 9,
                    ended,
                    ended,
                )
            )
    with (
        conn.cursor() as cursor,
        cursor.copy(_COPY) as copy,
    ):
        for row in rows:
            copy.write_row(row)
