"""A worker with the key delivers with secrets that the database cannot read; one without says what it lacks."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from menzil import Menzil
from menzil.worker import Worker
from tests.deliver.guard.ground import Victim
from tests.integration.test_secrets import everything

KEY, OTHER = (base64.b64encode(bytes([n]) * 32).decode() for n in (5, 6))


@pytest.fixture
def receiver() -> Iterator[Victim]:
    server = Victim("127.0.0.1")
    yield server
    server.close()


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("select menzil.set_setting('http_allow_internal_urls', 'on')")
        yield connection


def config(receiver: Victim) -> dict[str, Any]:
    auth = {"type": "bearer", "token": "canary-token"}
    return {"url": f"http://127.0.0.1:{receiver.port}/hook", "auth": auth, "headers": {"X-Api-Key": "canary-key"}}


def deliver(db: str, key: str) -> None:
    asyncio.run(Worker(db, secret_key=key, janitors=False, listen=False).serve(once=True))


def test_a_worker_with_the_key_delivers(db: str, conn: psycopg.Connection, receiver: Victim) -> None:
    with Menzil(db, secret_key=KEY) as client:
        client.create_endpoint("billing", "http", config(receiver))
        number = client.send("billing", {"a": 1})
    deliver(db, f"{OTHER},{KEY}")
    [request] = receiver.heard
    assert b"authorization: bearer canary-token" in request.lower()
    assert b"x-api-key: canary-key" in request.lower()
    assert conn.execute("select status from menzil.message_status(%s)", [number]).fetchone() == ("completed",)
    assert "canary" not in everything(conn)


@pytest.mark.parametrize(("key", "says"), [("", "this worker has no key"), (OTHER, "this worker has only")])
def test_a_worker_without_the_key_tries_again_later_and_says_why(
    db: str, conn: psycopg.Connection, receiver: Victim, key: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Menzil(db, secret_key=KEY) as client:
        client.create_endpoint("billing", "http", config(receiver))
        number = client.send("billing", {"a": 1})
    deliver(db, key)
    assert receiver.heard == []
    status, retries, error = conn.execute(
        "select status, retry_count, last_error from menzil.message_status(%s)", [number]
    ).fetchone() or (None, None, "")
    assert (status, retries) == ("pending", 1)
    assert "of endpoint 'billing' is encrypted with key" in error
    assert says in error
    assert "canary" not in everything(conn)
    assert says in caplog.text
    assert "canary" not in caplog.text
    assert KEY not in caplog.text
    # The key arrives, and so does the message.
    conn.execute("select menzil.message_retry_now(%s)", [number])
    deliver(db, KEY)
    assert len(receiver.heard) == 1
