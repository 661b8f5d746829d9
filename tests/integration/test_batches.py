"""A protocol that takes many messages at once, brought along by a package: what the worker hands to it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

import menzil
from menzil import Worker
from menzil.model.outcome import Complete, Fail
from menzil.worker import batches
from menzil.worker.leasing import Leasing

RULES = json.dumps([{"path": "how", "kind": "text", "maximum": 20}])
LEDGER = "from tests.integration.test_batches import Ledger\n"


class Ledger:
    """Writes down which messages came together, and does with them what the endpoint says."""

    batch = 100
    calls: list[list[Any]]
    most: int
    gate: asyncio.Event

    def __init__(self, surroundings: object) -> None:
        self.under_way = 0

    async def deliver_many(self, messages: Any, endpoint: Any) -> Any:
        kind = type(self)
        kind.calls.append([(endpoint.name, message.payload, message.ordering_key) for message in messages])
        self.under_way += 1
        kind.most = max(kind.most, self.under_way)
        try:
            match endpoint.config.get("how"):
                case "hang":
                    await kind.gate.wait()
                case "count":
                    return [Complete()]
                case "raise":
                    raise ValueError("a secret")
                case "judge":
                    return [Fail("odd", retry=False) if message.payload % 2 else Complete() for message in messages]
                case _:
                    await asyncio.sleep(0)
        finally:
            self.under_way -= 1
        return [None] * len(messages)

    async def deliver(self, message: Any, endpoint: Any) -> Any:
        raise AssertionError("the worker prefers batches")

    def refresh(self, surroundings: object) -> None: ...

    async def close(self) -> None: ...


@pytest.fixture
def ledger(tmp_path: Path, mq: menzil.Menzil, db: str, monkeypatch: pytest.MonkeyPatch) -> type[Ledger]:
    (tmp_path / "ledgers.py").write_text(LEDGER)
    info = tmp_path / "ledgers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ledgers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[menzil.protocols]\nledger = ledgers:Ledger\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ledgers", raising=False)
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.register_protocol('ledger', %s)", (RULES,))
        for how in ("plain", "hang", "count", "raise", "judge"):
            config = json.dumps({"how": how})
            conn.execute("select menzil.create_endpoint(%s, 'ledger', %s::jsonb)", (how, config))
    from tests.integration.test_batches import Ledger as Known  # the class that the package hands out

    Known.calls, Known.most, Known.gate = [], 0, asyncio.Event()
    return Known


def run(db: str, **options: Any) -> menzil.Tally:
    return Worker(db, janitors=False, **options).run(once=True)


def test_messages_to_one_endpoint_are_delivered_together(mq: menzil.Menzil, db: str, ledger: type[Ledger]) -> None:
    mq.send_batch("plain", list(range(1500)))
    assert run(db).delivered == 1500
    assert sorted(n for call in ledger.calls for _, n, _ in call) == list(range(1500))
    assert len(ledger.calls) <= 30
    assert max(map(len, ledger.calls)) == Ledger.batch
    assert 1 < ledger.most <= 3


def test_no_batch_has_two_messages_of_one_ordering_key(mq: menzil.Menzil, db: str, ledger: type[Ledger]) -> None:
    for n in range(40):
        mq.send("plain", n, ordering_key=f"k{n % 4}")
    assert run(db).delivered == 40
    for key in ("k0", "k1", "k2", "k3"):
        assert all(sum(one == key for _, _, one in call) <= 1 for call in ledger.calls)
        seen = [n for call in ledger.calls for _, n, one in call if one == key]
        assert seen == sorted(seen)


def test_each_message_of_a_batch_has_its_own_outcome(mq: menzil.Menzil, db: str, ledger: type[Ledger]) -> None:
    mq.send_batch("judge", list(range(100)))
    tally = run(db)
    assert (tally.delivered, tally.dead) == (50, 50)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("count", "The protocol of count returned 1 outcomes for 9 messages."),
        ("raise", "The protocol itself failed with ValueError"),
    ],
)
def test_a_protocol_that_breaks_its_word_loses_nothing(
    mq: menzil.Menzil, db: str, ledger: type[Ledger], name: str, reason: str
) -> None:
    mq.send_batch(name, list(range(9)))
    tally = run(db)
    assert (tally.delivered, tally.failed, tally.dead) == (0, 9, 0)
    with psycopg.connect(db) as conn:
        errors = {error for (error,) in conn.execute("select last_error from menzil.queue")}
    assert len(errors) == 1
    (error,) = errors
    assert reason in error
    assert "a secret" not in error


def test_an_endpoint_that_hangs_leaves_the_others_alone(mq: menzil.Menzil, db: str, ledger: type[Ledger]) -> None:
    async def story() -> menzil.Tally:
        worker = Worker(db, janitors=False, concurrency=4, grace=0.1)
        serving = asyncio.create_task(worker.serve())
        async with asyncio.timeout(60):
            while sum(call[0][0] == "hang" for call in ledger.calls) < 3:
                await asyncio.sleep(0.01)
            mq.send_batch("plain", list(range(500)))
            while sum(len(call) for call in ledger.calls if call[0][0] == "plain") < 500:
                await asyncio.sleep(0.01)
            worker.stop()
            return await serving

    mq.send_batch("hang", list(range(1000)))
    tally = asyncio.run(story())
    held = sum(len(call) for call in ledger.calls if call[0][0] == "hang")
    assert held <= 3 * Ledger.batch
    assert tally.delivered == 500
    assert tally.failed == 0
    with psycopg.connect(db) as conn:  # what was under way went back, and cost no retry
        query = "select count(*), sum(retry_count), count(*) filter (where status <> 'pending') from menzil.queue"
        found = conn.execute(query).fetchone()
    assert found == (1000, 0, 0)


def test_a_busy_endpoint_is_waited_for_before_others_are_asked_for(
    mq: menzil.Menzil, db: str, ledger: type[Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease for the others alone would bring nothing; the endpoint itself wakes the worker when it is back."""
    monkeypatch.setattr(batches, "SOON", 50.0)
    left_out: list[list[str]] = []
    lease = Leasing._lease

    async def noted(self: Leasing, limit: int, done: list[Any]) -> Any:
        left_out.append(self.source.out)
        return await lease(self, limit, done)

    monkeypatch.setattr(Leasing, "_lease", noted)

    async def story() -> menzil.Tally:
        worker = Worker(db, janitors=False)
        serving = asyncio.create_task(worker.serve())
        ledger.gate.set()
        async with asyncio.timeout(40):
            mq.send("hang", 0)
            while not ledger.calls:
                await asyncio.sleep(0.01)
            ledger.gate.clear()
            mq.send_batch("hang", list(range(2000)))
            while ledger.most < 3:
                await asyncio.sleep(0.01)
            ledger.gate.set()
            while sum(map(len, ledger.calls)) < 2001:
                await asyncio.sleep(0.01)
            worker.stop()
            return await serving

    assert asyncio.run(story()).delivered == 2001
    assert not any(left_out)
