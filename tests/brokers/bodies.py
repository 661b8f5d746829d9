"""What workers and commands do alike for every broker: the bodies of tests that name the broker and read it back."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest

import menzil
from menzil import Worker
from tests.integration.cli.user import User

QUICK = json.dumps({"base_delay_seconds": 0.05, "max_delay_seconds": 0.1, "max_retries": 10})
LEFT = "select count(*) from menzil.queue"


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("select menzil.set_setting('broker_allowed_networks', '127.0.0.0/8')")
        yield connection


def create(conn: psycopg.Connection, name: str, protocol: str, config: dict[str, Any]) -> None:
    conn.execute("select menzil.create_endpoint(%s, %s, %s::jsonb)", (name, protocol, json.dumps(config)))
    conn.execute("select menzil.set_retry_policy(%s, %s::jsonb)", (name, QUICK))


def one(conn: psycopg.Connection, query: str) -> Any:
    row = conn.execute(query).fetchone()
    return row[0] if row else None


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


def run(db: str) -> menzil.Tally:
    return Worker(db, janitors=False).run(once=True)


def deliver(db: str, conn: psycopg.Connection, protocol: str, config: dict[str, Any]) -> list[dict[str, Any]]:
    """Send 0 to 999 to an endpoint `x`, let a worker deliver them, and return what the broker answered for each."""
    create(conn, "x", protocol, config | {"capture_response": True})
    with menzil.Menzil(db) as mq:
        mq.send_batch("x", list(range(1000)))
    assert run(db).delivered == 1000
    assert one(conn, LEFT) == 0
    answers: list[dict[str, Any]] = one(conn, "select jsonb_agg(response) from menzil.archive where channel = 'x'")
    return answers


async def rotate_password(
    db: str,
    conn: psycopg.Connection,
    protocol: str,
    *,
    before: dict[str, Any],
    after: dict[str, Any],
    rotate: Callable[[], Awaitable[None]],
    error: str = "",
) -> None:
    """Deliver 0, rotate, send 1 to 1000 in vain, alter the config, and deliver them. Both passwords begin with canary.

    `before` and `after` are the configs with the old password and with the new one; `error` is a part of what the
    failures say.
    """
    create(conn, "x", protocol, before)
    conn.execute("select menzil.set_setting('circuit_breaker_cooldown', '5')")
    worker = Worker(db, janitors=False)
    serving = asyncio.create_task(worker.serve())
    with menzil.Menzil(db) as mq:
        mq.send("x", 0)
        await until(lambda: one(conn, LEFT) == 0, "the first delivery")
        await rotate()
        mq.send_batch("x", list(range(1, 1001)))
    await until(lambda: one(conn, "select circuit_state from menzil.endpoints") == "open", "an open circuit")
    assert one(conn, "select count(*) from menzil.dlq") == 0
    said = conn.execute("select last_error from menzil.queue where last_error is not null").fetchall()
    assert any(error in text for (text,) in said)
    conn.execute("select menzil.alter_endpoint('x', %s::jsonb)", (json.dumps(after),))
    conn.execute("select menzil.reset_circuit_breaker('x')")
    await until(lambda: one(conn, LEFT) == 0, "the rest")
    worker.stop()
    tally = await serving
    assert (tally.dead, tally.delivered) == (0, 1001)
    assert "canary" not in one(conn, "select coalesce(string_agg(a::text, ''), '') from menzil.attempts a")


def make_and_test(db: str, protocol: str, config: dict[str, Any], url: str) -> str:
    """Make an endpoint on the command line, allow its network, find its URL in the list, return what a test says."""
    user, whole = User(db), json.dumps(config | {"capture_response": True})
    made = user.types("endpoint", "create", "orders", "--protocol", protocol, "--config", whole)
    assert made.exit_code == 0
    assert made.stderr.splitlines() == [
        "127.0.0.1 is a loopback address: deliveries there are refused until a setting allows them.",
        "hint: menzil settings set broker_allowed_networks 127.0.0.1/32",
    ]
    assert user.types("settings", "set", "broker_allowed_networks", "127.0.0.1/32").exit_code == 0
    assert url in user.types("endpoint", "list").stdout
    worker = Worker(db, janitors=False)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        tested = user.types("endpoint", "test", "orders")
    finally:
        worker.stop()
        thread.join(60)
    assert tested.exit_code == 0, tested.output
    return tested.stdout
