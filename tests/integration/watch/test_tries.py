"""Tries of an endpoint: found below the newest try, however many messages wait above it."""

from __future__ import annotations

import pytest

from menzil import Fail, Menzil
from menzil.ops import looking_tries
from menzil.watch.endpoints import circuit
from tests.integration.watch.conftest import Seat


def test_tries_are_found_beside_more_waiting_messages_than_are_looked_through(
    seat: Seat, mq: Menzil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking_tries, "WINDOW", 10)
    mq.create_endpoint("crm", "http", {"url": "https://hooks.example.com/in"})
    mq.send_batch("crm", [{"n": n} for n in range(3)])
    done, failed, _ = mq.dequeue(3, 60, ["crm"])
    mq.complete(done)
    mq.fail_many([(failed, Fail("HTTP 503", response={"status": 503, "duration_ms": 7}))])
    mq.send_batch("work", [{"n": n} for n in range(50)])
    found = circuit(seat, "crm")
    assert sum(row["2xx"] for row in found["tries"]) == 1
    assert sum(row["5xx"] for row in found["tries"]) == 1
    assert found["p95_ms"] is not None
