"""One slow endpoint beside others, and messages of a megabyte: what one worker holds of each, by counts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

import menzil
from menzil.worker import source
from tests.acceptance.crew import Crew, until
from tests.acceptance.receiver import Receiver, receiver


@pytest.fixture
def slow(crew: Crew) -> Iterator[Receiver]:
    """An endpoint that answers nobody until its gate opens."""
    with receiver() as found:
        found.gate.clear()
        crew.ask("select menzil.set_setting('http_allow_internal_urls', 'true')")
        endpoint(crew, "slow", found)
        yield found


@pytest.fixture
def fast(crew: Crew, slow: Receiver) -> Iterator[Receiver]:
    with receiver() as found:
        endpoint(crew, "fast", found)
        yield found


def endpoint(crew: Crew, name: str, where: Receiver) -> None:
    crew.ask("select menzil.create_endpoint(%s, 'http', %s::jsonb)", name, json.dumps({"url": where.url}))


def send(crew: Crew, name: str, count: int) -> None:
    crew.ask("select menzil.send_batch(%s, array_fill('{}'::jsonb, array[%s]))", name, count)


class Running:
    """A worker in a thread of this process."""

    def __init__(self, app: menzil.Worker) -> None:
        self._app = app
        self._thread = threading.Thread(target=app.run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._app.stop(force=True)
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def worker(db: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    # What counts as slow is a matter of moments here: the worker soon has as many deliveries as it ever has.
    monkeypatch.setattr(source, "SLOW", 0.05)
    running = Running(menzil.Worker(db, concurrency=10, janitors=False))
    yield running
    running.stop()


def leased(crew: Crew, name: str) -> int:
    count: int = crew.ask("select count(*) from menzil.queue where channel = %s and status = 'processing'", name)
    return count


def test_an_endpoint_that_hangs_leaves_slots_for_the_first_message_of_another(
    crew: Crew, slow: Receiver, fast: Receiver, worker: Running
) -> None:
    send(crew, "slow", 200)
    until(lambda: leased(crew, "slow") >= 40, "nearly every slot to hang")
    for count in range(1, 11):
        send(crew, "fast", 1)
        until(lambda count=count: len(fast.bodies) == count, "the other endpoint")  # type: ignore[misc]
    assert not slow.gate.is_set()
    assert len(slow.bodies) <= 45  # nine tenths of the slots of a worker whose deliveries are all slow
    assert leased(crew, "slow") <= 45


def test_a_slow_endpoint_takes_half_of_the_slots_while_another_is_busy(
    crew: Crew, slow: Receiver, fast: Receiver, worker: Running
) -> None:
    send(crew, "slow", 200)
    send(crew, "fast", 300)
    until(lambda: crew.completed("fast") == 300)
    for _ in range(5):
        send(crew, "fast", 20)
    until(lambda: crew.completed("fast") == 400)
    assert 0 < len(slow.bodies) <= 26
    assert crew.completed("slow") == 0
    slow.gate.set()
    until(lambda: crew.completed("slow") == 200, "the slow one has all its messages in the end")


def test_a_worker_for_named_endpoints_shares_its_slots_too(
    crew: Crew, db: str, slow: Receiver, fast: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "SLOW", 0.05)
    send(crew, "slow", 200)
    send(crew, "fast", 50)
    running = Running(menzil.Worker(db, concurrency=10, janitors=False, channels=["slow", "fast"]))
    try:
        until(lambda: crew.completed("fast") == 50)
        send(crew, "fast", 50)
        until(lambda: crew.completed("fast") == 100)
        assert len(slow.bodies) <= 26
    finally:
        running.stop()


# How many messages were ever leased.
LEASED = """
select (select coalesce(sum(coalesce(cardinality(ids), hi_id - lo_id + 1)), 0) from menzil.lease)::int
  + (select count(*) from menzil.archive where status = 'completed')::int"""


def test_large_messages_are_leased_a_few_at_a_time(crew: Crew, db: str) -> None:
    app = menzil.Worker(db, endpoints=False, janitors=False, max_bytes=4_000_000)
    seen: list[int] = []

    @app.handler("work")
    async def work(message: menzil.Message) -> None:
        # A handled message stays leased until it is settled, but its body is gone: only messages not begun count.
        seen.append(crew.ask(LEASED) - len(seen))

    crew.ask("select menzil.channel_set('work')")
    body = json.dumps("x" * 400_000)
    crew.ask("select menzil.send_batch('work', array_fill(%s::jsonb, array[60]))", body)
    tally = app.run(once=True)
    assert tally.delivered == 60
    assert max(seen) <= 12
    assert max(seen) > 3


def test_a_message_larger_than_the_budget_is_delivered_all_the_same(crew: Crew, db: str) -> None:
    app, ids = menzil.Worker(db, endpoints=False, janitors=False, max_bytes=1000), []

    @app.handler("work")
    async def work(message: menzil.Message) -> None:
        ids.append(message.id)

    sent = crew.send("work", *("x" * 5000 for _ in range(5)))
    assert app.run(once=True).delivered == 5
    assert sorted(ids) == sorted(sent)


def test_small_messages_are_leased_as_before(crew: Crew, db: str) -> None:
    app, most = menzil.Worker(db, endpoints=False, janitors=False, concurrency=100), []

    @app.handler("work")
    async def work(message: menzil.Message) -> None:
        most.append(crew.ask("select max(coalesce(cardinality(ids), hi_id - lo_id + 1)) from menzil.lease"))

    crew.send("work", *map(str, range(400)))
    assert app.run(once=True).delivered == 400
    assert max(most) >= 64
