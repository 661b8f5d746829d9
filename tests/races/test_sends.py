"""Open business transactions: they never block each other, nor the consumers, nor the janitors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.races.actor import Actor
from tests.races.stage import Stage

Send = Callable[[Actor, str], object]

SENDS: dict[str, Send] = {
    "plain": lambda actor, channel: actor.send(channel),
    "keyed": lambda actor, channel: actor.send(channel, ordering_key="k"),
    "urgent": lambda actor, channel: actor.send(channel, priority=7),
    "later": lambda actor, channel: actor.send(channel, scheduled_at="2100-01-01"),
    "batch": lambda actor, channel: actor.send_batch(channel, 3),
    "many": lambda actor, channel: actor.send_many({"endpoint": channel, "ordering_key": "k"}, {"endpoint": channel}),
    "binary": lambda actor, channel: actor.one("select menzil.message_create(%s, 'x')", channel),
    "idempotent": lambda actor, channel: actor.send(channel, idempotency_key=str(actor.pid)),
}
LIMITS: dict[str, dict[str, object]] = {
    "free": {},
    "limited": {"max_concurrency": 2, "max_size": 1000, "release_interval_ms": 1000, "release_count": 100},
}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("send", SENDS)
def test_crossing_sends_do_not_wait_for_each_other(stage: Stage, send: str, limits: str):
    for channel in "ab":
        stage.watcher.channel(channel, **LIMITS[limits])
    one, two = stage.hire(), stage.hire()
    with one.open(), two.open():
        SENDS[send](one, "a")
        SENDS[send](two, "b")
        SENDS[send](one, "b")
        SENDS[send](two, "a")


@pytest.mark.parametrize("limits", LIMITS)
def test_open_transaction_with_sends_blocks_nobody(stage: Stage, limits: str):
    stage.watcher.channel("a", **LIMITS[limits])
    business, other, consumer = stage.hire(), stage.hire(), stage.hire()
    with business.open():
        for send in SENDS.values():
            send(business, "a")
        sent = [other.send("a"), other.send("a", ordering_key="k")]
        leases = consumer.take(2)
        assert {lease.id for lease in leases} == set(sent)
        assert consumer.heartbeat(leases) == ["settled"] * 2
        assert consumer.complete(leases[:1]) == ["settled"]
        assert consumer.fail(leases[1:], "[PERMANENT] no") == ["dead"]
        assert other.cancel(other.send("a", scheduled_at="2100-01-01")) is True
        assert consumer.recover() == 0
        stage.sweep()
        for call in [
            "channel_pause('a')",
            "channel_resume('a')",
            "maintain_archive_partitions()",
            "channel_purge('a')",
        ]:
            other.run(f"select menzil.{call}")
        other.channel("a", max_concurrency=50)
        assert stage.watcher.one("select count(*) from menzil.queue") == 0
    assert stage.live() == 1 + 1 + 1 + 1 + 3 + 2 + 1 + 1


def test_rolled_back_transaction_sends_nothing_and_delays_nobody(stage: Stage):
    business, consumer = stage.hire(), stage.hire()
    with business.open():
        for send in SENDS.values():
            send(business, "a")
        assert consumer.dequeue(50) == []
        business.rollback()
    sent = stage.watcher.send("a")
    assert [lease.id for lease in consumer.take(1)] == [sent]
    assert stage.nothing_is_ready()
    assert stage.live() == 1


def test_sends_of_a_savepoint_that_was_undone_are_not_delivered(stage: Stage):
    business, consumer = stage.hire(), stage.hire()
    with business.open():
        kept = business.send("a", ordering_key="k")
        business.run("savepoint s")
        business.send("a", ordering_key="k")
        business.send("a")
        business.run("rollback to s")
        later = business.send("a")
    assert {lease.id for lease in consumer.take(2)} == {kept, later}
    assert stage.nothing_is_ready()


def test_settling_and_sending_in_one_transaction_happens_wholly_or_not_at_all(stage: Stage):
    first = stage.watcher.send("a", ordering_key="k")
    worker, other = stage.hire(), stage.hire()
    leases = worker.take(1)
    worker.begin()
    worker.complete(leases)
    worker.send("b")
    assert other.dequeue(5) == []
    worker.rollback()
    assert stage.watcher.status(first) == "processing"
    assert stage.nothing_is_ready()
    with worker.open():
        assert worker.complete(leases) == ["settled"]
        second = worker.send("b")
    assert [lease.id for lease in other.take(1)] == [second]


def test_size_limit_is_exact_for_sends_one_after_another_and_open_ones_do_not_wait(stage: Stage):
    stage.watcher.channel("a", max_size=3)
    one, two = stage.hire(), stage.hire()
    with one.open():
        one.send_batch("a", 2)
        two.send_batch("a", 3)
    consumer = stage.hire()
    refused = "select menzil.send('a', '0')"
    with pytest.raises(Exception, match="full"):
        two.run(refused)
    consumer.complete(consumer.take(5))
    two.send_batch("a", 3)
    with pytest.raises(Exception, match="full"):
        two.run(refused)
