"""The queue of a shop on a busy afternoon, for pictures: made by calls that users make, then moved apart in time."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from menzil import Fail, Menzil, Message, Send
from tests.console.passing import Life, passes, spread
from tests.console.shop_pulse import write_pulse

WEB, BATCH = "web-1/2114", "batch-1/871"
BUSY = ("Server", "nginx"), ("Content-Type", "application/json")

#: Messages per minute to each channel, and how long they take from sent to ended, in seconds.
TRAFFIC = {"billing": (14, 1.2), "mail": (11, 2.5), "search-index": (9, 0.4), "carrier": (6, 3.5), "crm": (4, 1.8)}


@dataclass
class Shop:
    """What the pictures show: a message, a cause of dead letters, a draft of a plan."""

    waiting: int = 0
    cause: str = ""
    plan: int = 0


def open_shop(dsn: str) -> Shop:
    """Fill a database that has menzil installed."""
    shop = Shop()
    with Menzil(dsn) as mq, psycopg.connect(dsn, autocommit=True) as conn:
        _build(mq, conn)
        passes(conn, 26 * 3600)
        past = _past(mq)
        _limits(mq, conn)
        newest = max(past)
        _outage(mq, conn, shop, newest)
        _afternoon(mq, conn, newest)
        _spread(conn, past)
        _people(conn)
        row = conn.execute("select cause_hash from menzil.dlq where last_error like '%%HTTP 401%%' limit 1").fetchone()
        drafted = conn.execute(
            "select menzil.plan_create('redrive', %s::jsonb, 5, 'crm has its new key')",
            (f'{{"cause_hash": "{row[0]}"}}' if row else None,),
        ).fetchone()
        assert row is not None
        assert drafted is not None
        shop.cause, shop.plan = row[0], drafted[0]
        _named(conn)
        write_pulse(conn, TRAFFIC)
    return shop


def _build(mq: Menzil, conn: psycopg.Connection) -> None:
    conn.execute("set menzil.actor = 'ada'")
    conn.execute("set menzil.via = 'console'")
    mq.set_setting("circuit_breaker_cooldown", 300, conn=conn)
    for name in ("billing", "mail", "search-index", "sms"):
        mq.channel_set(name, conn=conn)
    mq.channel_set("stock-import", max_concurrency=2, on_dead="block", conn=conn)
    mq.create_endpoint("carrier", "http", {"url": "https://api.carrier.example/v2/labels"}, conn=conn)
    mq.create_endpoint(
        "crm", "http", {"url": "https://hooks.crm.example/orders", "headers": {"Authorization": "Bearer k1"}}, conn=conn
    )
    mq.create_endpoint("partner", "http", {"url": "https://partner.example/hooks", "timeout_seconds": 10}, conn=conn)
    policy = {"max_retries": 8, "backoff": "exponential", "base_delay_seconds": 60, "max_delay_seconds": 900}
    mq.set_retry_policy("partner", policy, conn=conn)
    mq.create_event_type(
        "order.paid", "An order was paid.", schema={"type": "object", "required": ["order"]}, conn=conn
    )
    mq.subscribe("order.paid", "crm", conn=conn)
    mq.subscribe("order.paid", "partner", filter={"country": "TR"}, conn=conn)
    mq.schedule_create(
        "stock-at-noon", "0 12 * * *", "stock-import", {"file": "noon"}, time_zone="Europe/Istanbul", conn=conn
    )


def _limits(mq: Menzil, conn: psycopg.Connection) -> None:
    mq.channel_set("billing", max_concurrency=8, conn=conn)
    mq.channel_set("carrier", max_concurrency=10, release_interval=600, release_count=60, conn=conn)
    mq.channel_set("sms", release_interval=1, release_count=5, conn=conn)


def _take(mq: Menzil, channel: str, limit: int = 1, worker: str = BATCH) -> list[Message]:
    return mq.dequeue(limit, 600, [channel], worker=worker)


#: When a message ended, its channel, and the error it died of.
Fate = tuple[datetime, str, str | None]


def _past(mq: Menzil) -> dict[int, Fate]:
    """Two hours of deliveries, and dead letters of four causes over the last eight, by id; `_spread` dates them."""
    dice, now = random.Random(42), datetime.now(UTC)
    plan: list[Fate] = []
    for channel, (rate, _) in TRAFFIC.items():
        plan += [(now - timedelta(minutes=dice.uniform(2, 122)), channel, None) for _ in range(rate * 120)]
    for ago, many, channel, error in (
        (182, 46, "crm", "HTTP 401 from hooks.crm.example: invalid api key"),
        (470, 17, "mail", "SMTPRecipientsRefused: 550 mailbox unavailable"),
        (300, 5, "billing", "CardDeclined: insufficient funds"),
        (96, 8, "carrier", "HTTP 422 from api.carrier.example: postal code missing"),
    ):
        plan += [(now - timedelta(minutes=ago * dice.uniform(0.05, 1) ** 0.7), channel, error) for _ in range(many - 1)]
        plan.append((now - timedelta(minutes=ago), channel, error))
    plan.sort(key=lambda one: one[0])
    ids = mq.send_many(Send(channel, _order(dice)) for _, channel, _ in plan)
    fate = dict(zip(ids, plan, strict=True))
    for channel in TRAFFIC:
        taken = _take(mq, channel, 10_000, WEB if channel in ("carrier", "crm") else BATCH)
        mq.complete_many([one for one in taken if fate[one.id][2] is None])
        mq.fail_many((one, Fail(fate[one.id][2] or "", retry=False)) for one in taken if fate[one.id][2])
    return fate


def _spread(conn: psycopg.Connection, past: dict[int, Fate]) -> None:
    dice = random.Random(5)
    spread(conn, [_life(dice, number, at, channel) for number, (at, channel, _) in past.items()])


def _order(dice: random.Random) -> dict[str, Any]:
    return {
        "order": dice.randrange(48_000, 53_000),
        "total": f"{dice.randrange(900, 24_000) / 100:.2f}",
        "country": "TR",
    }


def _life(dice: random.Random, number: int, at: datetime, channel: str) -> Life:
    took = TRAFFIC[channel][1] * dice.lognormvariate(0, 0.7)
    worked = min(took * 0.8, dice.lognormvariate(-2.2, 0.5))
    return number, at - timedelta(seconds=took), at - timedelta(seconds=worked), at


def _outage(mq: Menzil, conn: psycopg.Connection, shop: Shop, newest: int) -> None:
    """The partner's server fails: tries, retries, and a circuit that opens and probes in vain."""
    answer = {"status": 503, "duration_ms": 214, "headers": dict(BUSY), "body": '{"error": "down for maintenance"}'}
    sent = [
        mq.send(
            "partner",
            {"event": "order.paid", "order": 52_000 + number, "total": "129.90", "currency": "TRY", "country": "TR",
             "customer": {"id": 7_731, "email": "ada@example.com"}, "items": [{"sku": "TEA-250", "count": 2}]},
            idempotency_key=f"order-{52_000 + number}",
            metadata={"traceparent": f"00-4bf92f3577b34da6a3ce929d0e0e{number:04x}-00f067aa0ba902b7-01"},
        )
        for number in range(14)
    ]  # fmt: skip
    shop.waiting = sent[0]
    for wait in (64, 130, 250, 490, 905):
        taken = _take(mq, "partner", 14, WEB)
        passes(conn, 0.3, newest)
        mq.fail_many((one, Fail("HTTP 503 from partner.example", response=answer)) for one in taken)
        _take(mq, "partner", 1, WEB)  # the next look of a worker opens the circuit
        passes(conn, wait, newest)


def _afternoon(mq: Menzil, conn: psycopg.Connection, newest: int) -> None:
    """What waits, what is in flight, and a rate limit that is used up."""
    dice = random.Random(3)
    mq.send_many(Send("carrier", _order(dice)) for _ in range(53))
    for many, pause in ((9, 36), (10, 49), (6, 42), (10, 31), (8, 26), (10, 15)):
        mq.complete_many(_take(mq, "carrier", many, WEB))
        passes(conn, pause, newest)
    mq.send_many(Send("carrier", _order(dice), priority=dice.choice((0, 0, 0, 3, 8))) for _ in range(97))
    _take(mq, "carrier", 7, WEB)
    mq.send_many(Send("partner", _order(dice)) for _ in range(60))
    mq.send_many(Send("billing", _order(dice), ordering_key=f"customer-{dice.randrange(400)}") for _ in range(70))
    mq.send("stock-import", {"file": "noon.csv"}, priority=5, ordering_key="warehouse-2")
    mq.send_batch("stock-import", [{"file": f"part-{number}.csv"} for number in range(3)])
    mq.send_many([Send("stock-import", {"file": f"late-{n}.csv"}, ordering_key="warehouse-2") for n in range(4)])
    deadline = time.monotonic() + 60
    while not (taken := _take(mq, "stock-import")):  # a lane that a job looks at is passed over for a moment
        assert time.monotonic() < deadline, "nothing of stock-import was leased"
    mq.fail(taken[0], "ValueError: row 1,204: unknown sku", permanent=True)
    passes(conn, 41, newest)
    _take(mq, "billing", 8)
    mq.send_batch("search-index", [{"sku": f"TEA-{number}"} for number in range(5)])
    mq.send_many([Send("mail", _order(dice)) for _ in range(9)])
    mq.send("mail", {"kind": "reminder"}, delay=7200)
    _take(mq, "mail", 3)
    for one in _take(mq, "partner", 1, WEB):
        passes(conn, 10, newest)
        mq.fail(one, "connect to partner.example timed out after 10 s")
        _take(mq, "partner", 1, WEB)
    passes(conn, 2, newest)


def _people(conn: psycopg.Connection) -> None:
    """The workers, and what was done by hand: ada changed crm shortly before its dead letters began."""
    hello = "select menzil.worker_hello(%s, %s, %s, %s, %s, %s)"
    conn.execute(hello, (WEB, "web-1.shop.example", 2114, "0.2.0", None, 100))
    conn.execute(hello, (BATCH, "batch-1.shop.example", 871, "0.2.0", ["billing", "mail", "search-index", "sms"], 20))
    conn.execute(hello, ("batch-2/872", "batch-2.shop.example", 872, "0.2.0", ["billing", "stock-import"], 20))
    beat(conn)
    conn.execute("update menzil.worker set started_at = now() - interval '51 min'")
    config = '{"url": "https://hooks.crm.example/orders", "headers": {"Authorization": "Bearer k2"}}'
    conn.execute("select menzil.alter_endpoint('crm', %s::jsonb)", (config,))
    conn.execute(
        "update menzil.event set created_at = now() - interval '184 min' where id = (select max(id) from menzil.event)"
    )


def beat(conn: psycopg.Connection) -> None:
    """Every worker says that it is alive."""
    told = (WEB, 7, 120_834, 211), (BATCH, 11, 55_021, 98), ("batch-2/872", 0, 18_220, 7)
    for said in told:
        conn.execute("select menzil.worker_heartbeat(%s, %s, %s, %s)", said)


def _named(conn: psycopg.Connection) -> None:
    """Roles of a shop in the place of the superuser who made all this."""
    conn.execute("update menzil.event set actor = 'ada' where actor like 'ada (%'")
    conn.execute("update menzil.event set actor = 'shop_worker', via = 'worker' where actor <> 'ada'")
    conn.execute("update menzil.plan set actor = 'ada'")
