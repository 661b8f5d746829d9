"""Consumers against consumers: every message goes to one of them, and none is lost when one of them is."""

from __future__ import annotations

import threading
from collections import Counter

import psycopg
import pytest

from tests.races.actor import Actor, Lease
from tests.races.stage import Stage, poll


def test_two_consumers_of_one_channel_get_different_messages(stage: Stage):
    ids = stage.watcher.send_batch("a", 2)
    one, two = stage.hire(), stage.hire()
    barrier = threading.Barrier(2)

    def race(actor: Actor) -> list[Lease]:
        barrier.wait()
        return actor.take(1)

    taken = [stage.start(race, actor) for actor in (one, two)]
    assert sorted(lease.id for future in taken for lease in future.result()) == ids


def test_last_message_goes_to_one_of_three_consumers(stage: Stage):
    consumers = [stage.hire() for _ in range(3)]
    barrier = threading.Barrier(3)

    def race(actor: Actor) -> list[Lease]:
        barrier.wait()
        return actor.dequeue(5)

    for _ in range(20):
        sent = stage.watcher.send("a")
        taken = [lease.id for f in [stage.start(race, c) for c in consumers] for lease in f.result()]
        taken += [lease.id for lease in stage.watcher.take(1 - len(taken))]
        assert taken == [sent]


def test_consumer_passes_over_a_channel_that_another_one_is_at(stage: Stage):
    stage.watcher.send_batch("a", 2)
    stage.watcher.send_batch("b", 2)
    stage.sweep()
    one, two = stage.hire(), stage.hire()
    with one.open():
        mine = one.dequeue()
        theirs = two.dequeue()
        assert {mine[0].channel, theirs[0].channel} == {"a", "b"}


def test_consumer_that_finds_its_channel_taken_returns_empty_handed_and_soon(stage: Stage):
    stage.watcher.send_batch("a", 2)
    stage.sweep()
    one, two = stage.hire(), stage.hire()
    with one.open():
        assert len(one.dequeue()) == 1
        assert two.dequeue(1, "a") == []
    assert len(two.take(1, "a")) == 1


def test_dequeue_that_rolls_back_gives_its_messages_back(stage: Stage):
    ids = stage.watcher.send_batch("a", 5)
    one, two = stage.hire(), stage.hire()
    one.begin()
    assert [lease.id for lease in one.take(5)] == ids
    one.rollback()
    again = two.take(5)
    assert [lease.id for lease in again] == ids
    assert {lease.attempt for lease in again} == {1}


def test_dequeue_that_rolls_back_gives_its_slots_and_its_rate_back(stage: Stage):
    stage.watcher.channel("a", max_concurrency=2, release_interval_ms=3_600_000, release_count=2)
    stage.watcher.send_batch("a", 3)
    one, two = stage.hire(), stage.hire()
    one.begin()
    assert len(one.take(2)) == 2
    one.rollback()
    assert len(two.take(2)) == 2
    assert stage.nothing_is_ready()


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_dequeue_in_an_older_snapshot_is_refused(stage: Stage, isolation: str):
    stage.watcher.send("a")
    actor = stage.hire()
    actor.begin(isolation)
    with pytest.raises(psycopg.Error) as refused:
        actor.dequeue()
    assert refused.value.sqlstate == "25001"
    assert "begin isolation level read committed" in str(refused.value.diag.message_hint)
    actor.rollback()
    assert len(actor.take(1)) == 1


def test_consumer_killed_before_its_commit_loses_nothing(stage: Stage):
    ids = stage.watcher.send_batch("a", 3)
    victim, heir = stage.hire(), stage.hire()
    victim.begin()
    victim.complete(victim.take(1))
    victim.take(1)
    stage.watcher.run("select pg_terminate_backend(%s)", victim.pid)
    assert [lease.id for lease in heir.take(3)] == ids


def test_consumer_killed_after_its_commit_is_inherited_when_its_lease_ends(stage: Stage):
    sent = stage.watcher.send("a")
    victim, heir = stage.hire(), stage.hire()
    [lost] = victim.take(1, lease=50)
    stage.watcher.run("select pg_terminate_backend(%s)", victim.pid)
    [found] = heir.take(1)
    assert (found.id, found.attempt) == (sent, lost.attempt + 1)
    assert heir.complete([lost]) == ["stale"]
    assert heir.complete([found]) == ["settled"]


def test_killed_sender_leaves_no_message_and_no_obstacle(stage: Stage):
    victim, sender, consumer = stage.hire(), stage.hire(), stage.hire()
    victim.begin()
    lost = victim.send("a", idempotency_key="k", ordering_key="o")
    stage.watcher.run("select pg_terminate_backend(%s)", victim.pid)
    poll(lambda: not stage.watcher.run("select 1 from pg_stat_activity where pid = %s", victim.pid), "it is gone")
    sent = sender.send("a", idempotency_key="k", ordering_key="o")
    assert [lease.id for lease in consumer.take(1)] == [sent]
    assert sent != lost
    assert stage.live() == 1


def test_four_consumers_deliver_a_hot_channel_exactly_once(stage: Stage):
    ids = stage.watcher.send_batch("a", 1000)
    barrier = threading.Barrier(4)
    seen: Counter[int] = Counter()

    def work(actor: Actor) -> list[int]:
        mine: list[int] = []
        barrier.wait()
        while actor.one("select count(*) from menzil.queue") > 0:
            leases = actor.dequeue(20)
            assert actor.complete(leases) == ["settled"] * len(leases)
            mine += [lease.id for lease in leases]
        return mine

    for future in [stage.start(work, stage.hire()) for _ in range(4)]:
        seen.update(future.result())
    assert seen == Counter(ids)
    assert stage.watcher.one("select count(distinct id) from menzil.archive where status = 'completed'") == 1000
