"""Ordering keys under several consumers: one in flight per key, by id among what is committed."""

from __future__ import annotations

import threading
from collections import defaultdict

import pytest

from tests.races.actor import Actor
from tests.races.stage import Stage, poll


def test_three_consumers_never_have_two_of_a_key_in_flight_and_keep_its_order(stage: Stage):
    for number in range(60):
        for key in "xyz":
            stage.watcher.send("a", number, ordering_key=key)
    lock = threading.Lock()
    flying: dict[str | None, int] = defaultdict(int)
    order: dict[str | None, list[int]] = defaultdict(list)
    clashes: list[str] = []

    def work(actor: Actor) -> None:
        while actor.one("select count(*) from menzil.queue") > 0:
            for lease in actor.dequeue(4):
                with lock:
                    flying[lease.key] += 1
                    order[lease.key].append(lease.id)
                    if flying[lease.key] > 1:
                        clashes.append(f"{lease} while another one of its key is in flight")
                with lock:
                    # Counted down before the settle, while it is still ours: later could be too late.
                    flying[lease.key] -= 1
                actor.complete([lease])

    for future in [stage.start(work, stage.hire(patient=True)) for _ in range(3)]:
        future.result(timeout=60)
    assert clashes == []
    assert all(ids == sorted(ids) and len(ids) == 60 for ids in order.values())
    assert len(order) == 3


def test_rival_consumers_are_not_given_two_heads_of_a_key(stage: Stage):
    one, two = stage.hire(), stage.hire()
    first = stage.watcher.send("a", ordering_key="k")
    stage.watcher.send("a", ordering_key="k")
    with one.open():
        assert [lease.id for lease in one.take(1)] == [first]
        assert two.dequeue(5) == []
    assert stage.nothing_is_ready()


def test_late_lower_id_that_commits_before_the_head_is_settled_goes_next(stage: Stage):
    late, consumer = stage.hire(), stage.hire()
    late.begin()
    low = late.send("a", ordering_key="k")
    head, high = (stage.watcher.send("a", ordering_key="k") for _ in range(2))
    leases = consumer.take(1)
    assert [lease.id for lease in leases] == [head]
    late.commit()
    for expected in [low, high]:
        consumer.complete(leases)
        leases = consumer.take(1)
        assert [lease.id for lease in leases] == [expected]


def test_late_lower_id_that_commits_while_the_head_is_being_settled_is_not_lost(stage: Stage):
    late, consumer, other = stage.hire(), stage.hire(), stage.hire()
    late.begin()
    low = late.send("a", ordering_key="k")
    head, high = (stage.watcher.send("a", ordering_key="k") for _ in range(2))
    leases = consumer.take(1)
    with consumer.open():
        consumer.complete(leases)
        assert other.dequeue(5) == []
        late.commit()
        assert other.dequeue(5) == []
    [next_one] = other.take(1)
    assert next_one.id == low
    other.complete([next_one])
    assert [lease.id for lease in other.take(1)] == [high]
    assert stage.watcher.status(head) == "completed"


@pytest.mark.parametrize("settle", ["complete", "defer", "fail"])
def test_settle_that_rolls_back_keeps_its_key_blocked(stage: Stage, settle: str):
    head, behind = (stage.watcher.send("a", ordering_key="k") for _ in range(2))
    consumer, other = stage.hire(), stage.hire()
    leases = consumer.take(1)
    with consumer.open():
        getattr(consumer, settle)(leases)
        assert other.dequeue(5) == []
        consumer.rollback()
    assert stage.nothing_is_ready()
    assert consumer.complete(leases) == ["settled"]
    assert [lease.id for lease in other.take(1)] == [behind]
    assert stage.watcher.status(head) == "completed"


def test_recovered_head_keeps_its_key(stage: Stage):
    head, behind = (stage.watcher.send("a", ordering_key="k") for _ in range(2))
    consumer, janitor = stage.hire(), stage.hire()
    consumer.take(1, lease=1)
    with janitor.open():
        poll(lambda: janitor.recover() == 1, "the lease is taken back")
        assert consumer.dequeue(5) == []
    [again] = consumer.take(1)
    assert (again.id, again.attempt) == (head, 2)
    assert stage.nothing_is_ready()
    assert consumer.complete([again]) == ["settled"]
    assert [lease.id for lease in consumer.take(1)] == [behind]


def test_two_senders_with_one_key_keep_each_others_commits_apart(stage: Stage):
    one, two, consumer = stage.hire(), stage.hire(), stage.hire()
    one.begin()
    two.begin()
    first = one.send("a", ordering_key="k")
    second = two.send("a", ordering_key="k")
    third = one.send("a", ordering_key="k")
    two.commit()
    leases = consumer.take(1)
    assert [lease.id for lease in leases] == [second]
    one.rollback()
    consumer.complete(leases)
    assert stage.nothing_is_ready()
    assert first < second < third


def test_keys_of_a_channel_at_its_limit_go_on_when_slots_come_back(stage: Stage):
    """Heads are raised and slots given back by different consumers in any order."""
    stage.watcher.channel("a", max_concurrency=2)
    total = 0
    for number in range(20):
        for key in "vwxyz":
            stage.watcher.send("a", number, ordering_key=key, priority=number % 3)
            total += 1
    crew = [stage.start(work_off, stage.hire(patient=True)) for _ in range(4)]
    assert sum(future.result(timeout=60) for future in crew) == total


def work_off(actor: Actor) -> int:
    done = 0
    while actor.one("select count(*) from menzil.queue") > 0:
        leases = actor.dequeue(2)
        done += actor.complete(leases).count("settled")
    return done
