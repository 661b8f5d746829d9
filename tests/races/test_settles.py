"""Settles against settles, heartbeats, recoveries and limits: one wins, the other is told, nobody deadlocks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import pytest

from tests.races.actor import Actor, Lease
from tests.races.stage import Stage, poll

T = TypeVar("T")

SETTLES = ["complete", "defer", "fail"]


@pytest.mark.parametrize("first", SETTLES)
@pytest.mark.parametrize("second", SETTLES)
def test_second_settle_of_one_lease_waits_and_is_refused(stage: Stage, first: str, second: str):
    stage.watcher.send("a")
    one, two = stage.hire(), stage.hire(patient=True)
    leases = one.take(1)
    with one.open():
        assert getattr(one, first)(leases) == ["retry" if first == "fail" else "settled"]
        late: Future[list[str]] = stage.start(getattr(two, second), leases)
        stage.until_waiting(two, for_whom=one)
    assert late.result() == ["unknown" if first == "complete" else "stale"]
    assert stage.watcher.one("select count(*) from menzil.attempts") == 1


def test_second_settle_wins_when_the_first_rolls_back(stage: Stage):
    sent = stage.watcher.send("a")
    one, two = stage.hire(), stage.hire(patient=True)
    leases = one.take(1)
    with one.open():
        one.fail(leases, "[PERMANENT] no")
        late = stage.start(two.complete, leases)
        stage.until_waiting(two, for_whom=one)
        one.rollback()
    assert late.result() == ["settled"]
    assert stage.watcher.status(sent) == "completed"
    assert stage.watcher.one("select count(*) from menzil.dlq") == 0


def test_recovery_passes_over_a_lease_that_is_being_settled(stage: Stage):
    sent = stage.watcher.send("a")
    one, janitor = stage.hire(), stage.hire()
    leases = one.take(1, lease=1)
    with one.open():
        assert one.complete(leases) == ["settled"]
        assert janitor.recover() == 0
    assert stage.watcher.status(sent) == "completed"


def test_recovery_comes_back_to_a_lease_whose_settle_rolled_back(stage: Stage):
    stage.watcher.send("a")
    one, janitor = stage.hire(), stage.hire()
    leases = one.take(1, lease=1)
    with one.open():
        one.complete(leases)
        poll(lambda: janitor.recover() == 0, "the lease is passed over")
        one.rollback()
    poll(lambda: janitor.recover() == 1, "the lease is taken back")
    assert one.complete(leases) == ["stale"]


def test_settle_that_meets_a_recovery_is_stale(stage: Stage):
    sent = stage.watcher.send("a")
    one, janitor = stage.hire(patient=True), stage.hire()
    leases = one.take(1, lease=1)
    with janitor.open():
        poll(lambda: janitor.recover() == 1, "the lease is taken back")
        late = stage.start(one.complete, leases)
        stage.until_waiting(one, for_whom=janitor)
    assert late.result() == ["stale"]
    assert stage.watcher.status(sent) == "pending"


def test_heartbeat_that_meets_a_recovery_is_stale(stage: Stage):
    stage.watcher.send("a")
    one, janitor = stage.hire(patient=True), stage.hire()
    leases = one.take(1, lease=1)
    with janitor.open():
        poll(lambda: janitor.recover() == 1, "the lease is taken back")
        late = stage.start(one.heartbeat, leases)
        stage.until_waiting(one, for_whom=janitor)
    assert late.result() == ["stale"]


def test_recovery_passes_over_a_lease_that_is_being_extended(stage: Stage):
    stage.watcher.send("a")
    one, janitor = stage.hire(), stage.hire()
    leases = one.take(1, lease=1)
    with one.open():
        assert one.heartbeat(leases) == ["settled"]
        assert janitor.recover() == 0
    assert janitor.recover() == 0
    assert one.complete(leases) == ["settled"]


def test_recovery_keeps_watching_a_lease_that_was_extended(stage: Stage):
    stage.watcher.send("a")
    one, janitor = stage.hire(), stage.hire()
    leases = one.take(1, lease=1)
    for _ in range(3):
        one.heartbeat(leases, lease=150)
        poll(
            lambda: (
                not stage.watcher.run("select 1 from menzil.lease where watch_at <= now()") or janitor.recover() == 0
            ),
            "it was looked at",
        )
        assert one.heartbeat(leases, lease=150) == ["settled"]
    poll(lambda: janitor.recover() == 1, "the lease is taken back after its last extension")
    assert one.heartbeat(leases) == ["stale"]


@pytest.mark.parametrize("settle", SETTLES)
def test_heartbeat_that_meets_a_settle_is_refused(stage: Stage, settle: str):
    stage.watcher.send("a")
    one, heart = stage.hire(), stage.hire(patient=True)
    leases = one.take(1)
    with one.open():
        getattr(one, settle)(leases)
        late = stage.start(heart.heartbeat, leases)
        stage.until_waiting(heart, for_whom=one)
    assert late.result() == ["unknown" if settle == "complete" else "stale"]


def test_settle_waits_for_an_open_heartbeat_and_wins(stage: Stage):
    stage.watcher.send("a")
    one, heart = stage.hire(patient=True), stage.hire()
    leases = one.take(1)
    with heart.open():
        assert heart.heartbeat(leases) == ["settled"]
        late = stage.start(one.complete, leases)
        stage.until_waiting(one, for_whom=heart)
    assert late.result() == ["settled"]
    assert heart.heartbeat(leases) == ["unknown"]


def backwards(stage: Stage, actor: Actor, count: int) -> list[Lease]:
    """Leases whose rows lie in the table in the opposite order of their ids."""
    for priority in range(count):
        stage.watcher.send("a", priority=priority)
    leases = [actor.take(1)[0] for _ in range(count)]
    assert [lease.id for lease in leases] == sorted((lease.id for lease in leases), reverse=True)
    return leases[::-1]


@pytest.mark.parametrize("other", ["complete", "heartbeat", "fail"])
def test_batches_with_the_same_leases_in_opposite_order_do_not_deadlock(stage: Stage, other: str):
    one, two, third = stage.hire(patient=True), stage.hire(patient=True), stage.hire()
    leases = backwards(stage, third, 3)
    with third.open():
        third.heartbeat([leases[1]])
        settle = stage.start(one.complete, leases)
        stage.until_waiting(one)
        late = stage.start(getattr(two, other), leases[::-1])
        stage.until_waiting(two)
    assert settle.result() == ["settled"] * 3
    assert late.result() == ["unknown"] * 3


@pytest.mark.parametrize("settle", ["complete", "heartbeat"])
def test_limit_that_counts_leases_waits_for_no_settle_and_counts_them(stage: Stage, settle: str):
    operator, consumer, third = stage.hire(), stage.hire(), stage.hire()
    first, middle, last = backwards(stage, third, 3)
    stage.watcher.send_batch("a", 5)
    with third.open():
        third.heartbeat([middle])
        operator.channel("a", max_concurrency=5)
        assert getattr(consumer, settle)([first, last]) == ["settled"] * 2
    room = 4 if settle == "complete" else 2
    assert len(consumer.take(room)) == room
    assert stage.nothing_is_ready()
    assert stage.watcher.one("select in_flight from menzil.channels where name = 'a'") == 5


@pytest.mark.parametrize("verbs", [(a, b) for n, a in enumerate(SETTLES) for b in SETTLES[n:]], ids="-".join)
def test_of_two_settles_of_one_token_at_the_same_moment_one_wins(stage: Stage, verbs: tuple[str, str]):
    actors = [stage.hire(patient=True), stage.hire(patient=True)]
    barrier = threading.Barrier(2)

    def settle(actor: Actor, verb: str, leases: list[Lease]) -> list[str]:
        barrier.wait()
        return getattr(actor, verb)(leases)

    for number in range(15):
        stage.watcher.send_batch("a", 1 + number % 3)
        leases = actors[0].take(1 + number % 3)
        futures = [stage.start(settle, actor, verb, leases) for actor, verb in zip(actors, verbs, strict=True)]
        for one, two in zip(*(future.result() for future in futures), strict=True):
            assert sum(outcome in ("settled", "retry") for outcome in (one, two)) == 1
        again = stage.watcher.dequeue(10)
        stage.watcher.complete(again)
        stage.watcher.run("select menzil.channel_purge('a')")
    assert stage.live() == 0


def test_heartbeat_and_recovery_at_the_same_moment_keep_the_lease_or_take_it_back(stage: Stage):
    heart, janitor = stage.hire(patient=True), stage.hire(patient=True)
    barrier = threading.Barrier(2)
    seen: Counter[tuple[str, int]] = Counter()

    def meet(act: Callable[[], T]) -> T:
        barrier.wait()
        return act()

    for number in range(60):
        # Both orders: who is at the barrier last has a little advantage.
        stage.watcher.send("a")
        [lease] = stage.watcher.take(1, lease=1)
        stage.watcher.run("select pg_sleep_until(max(unlock_at)) from menzil.lease")
        acts = [lambda: heart.heartbeat([lease])[0], janitor.recover]  # noqa: B023
        futures = [stage.start(meet, act) for act in (acts if number % 2 else acts[::-1])]
        results = [future.result() for future in futures]
        beat, recovered = results if number % 2 else results[::-1]
        assert (beat, recovered) in [("settled", 0), ("stale", 1)]
        seen[beat, recovered] += 1
        attempt = lease if beat == "settled" else stage.watcher.take(1)[0]
        assert attempt.id == lease.id
        assert stage.watcher.complete([attempt]) == ["settled"]
    assert stage.live() == 0


def test_eight_threads_that_settle_each_others_leases_settle_each_once(stage: Stage):
    stage.watcher.send_batch("a", 200)
    leases = stage.watcher.take(200)
    barrier = threading.Barrier(8)
    actors = [stage.hire(patient=True) for _ in range(8)]

    def settle(actor: Actor, turn: int) -> list[str]:
        mine = leases[turn * 25 :] + leases[: turn * 25]
        barrier.wait()
        return actor.complete(mine if turn % 2 else mine[::-1])

    outcomes: Counter[str] = Counter()
    for future in [stage.start(settle, actor, turn) for turn, actor in enumerate(actors)]:
        outcomes.update(future.result())
    assert outcomes == {"settled": 200, "unknown": 1400}
    assert stage.watcher.one("select count(*) from menzil.archive") == 200
