"""Concurrency and rate limits under several consumers, and changed while they run."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import psycopg
import pytest

from tests.races.actor import Actor
from tests.races.pause import WAIT, Pause, pause_before
from tests.races.stage import DEADLINE, Stage, poll


class Crew:
    """Consumers that lease and complete until told to stop."""

    def __init__(self, stage: Stage, size: int, hold: int = 3) -> None:
        self._going = threading.Event()
        self._going.set()
        self._hold = hold
        self._futures = [stage.start(self._work, stage.hire(patient=True), turn) for turn in range(size)]

    def _work(self, actor: Actor, turn: int) -> int:
        done = 0
        held = []
        while self._going.is_set():
            held += actor.dequeue(1 + (done + turn) % 5)
            # Holds a few leases over several looks, so that a limit is really reached.
            if len(held) >= self._hold or done % 3 == turn % 3:
                assert actor.complete(held) == ["settled"] * len(held)
                held = []
            done += 1
        actor.complete(held)
        return done

    def stop(self) -> None:
        self._going.clear()
        for future in self._futures:
            future.result()


def sample(stage: Stage, channel: str, limit: int, until: Callable[[], bool]) -> int:
    """Counts leases again and again; returns the most there ever were, which may not exceed the limit."""
    most = 0
    deadline = time.monotonic() + DEADLINE
    while not until():
        assert time.monotonic() < deadline, f"{stage.live()} messages are left"
        count = stage.watcher.one(
            "select count(*) from menzil.queue where channel = %s and status = 'processing'", channel
        )
        most = max(most, count)
        assert count <= limit, f"{count} messages of channel {channel} in flight, {limit} allowed"
    return most


@pytest.mark.parametrize("limit", [1, 3])
def test_concurrency_limit_holds_under_four_consumers(stage: Stage, limit: int):
    stage.watcher.channel("a", max_concurrency=limit)
    stage.watcher.send_batch("a", 150)
    crew = Crew(stage, 4, hold=1)
    most = sample(stage, "a", limit, lambda: stage.live() == 0)
    crew.stop()
    assert most >= 1
    assert stage.watcher.one("select count(*) from menzil.archive") == 150
    stage.sweep()
    assert stage.watcher.one("select in_flight from menzil.channels where name = 'a'") == 0


def test_limit_counts_over_the_priorities_of_a_channel(stage: Stage):
    stage.watcher.channel("a", max_concurrency=2)
    for priority in range(11):
        for _ in range(10):
            stage.watcher.send("a", priority=priority)
    crew = Crew(stage, 4, hold=1)
    sample(stage, "a", 2, lambda: stage.live() == 0)
    crew.stop()
    assert stage.watcher.one("select count(*) from menzil.archive") == 110


@pytest.mark.parametrize(
    ("limits", "held", "room"),
    [([None, 2], 3, 0), ([None, 5], 3, 2), ([5, 1], 3, 0), ([3, None, 3], 2, 1), ([3, None, 3], 3, 0), ([1, 4], 1, 3)],
    ids=lambda value: str(value).strip("[]"),
)
def test_limit_changed_while_leases_exist_counts_them(stage: Stage, limits: list[int | None], held: int, room: int):
    consumer = stage.hire()
    stage.watcher.channel("a", max_concurrency=limits[0])
    stage.watcher.send_batch("a", 20)
    leases = consumer.take(held)
    for limit in limits[1:]:
        stage.watcher.channel("a", max_concurrency=limit)
    stage.sweep()
    more = [lease for _ in range(3) for lease in consumer.dequeue(20)]
    assert len(more) == room
    consumer.complete(leases + more)
    last = limits[-1]
    assert last is not None
    assert len(consumer.take(last)) == last
    assert stage.nothing_is_ready()


def test_limit_lifted_and_set_again_over_leases_of_every_age_holds(stage: Stage):
    one = stage.hire()
    stage.watcher.channel("a", max_concurrency=3)
    stage.watcher.send_batch("a", 30)
    old = one.take(3)
    stage.watcher.channel("a")
    free = one.take(4)
    stage.watcher.channel("a", max_concurrency=3)
    for lease in old + free[:1]:
        one.complete([lease])
        stage.sweep()
        assert one.dequeue(10) == []
    one.complete(free[1:2])
    assert len(one.take(1)) == 1
    assert stage.nothing_is_ready()


def test_limit_changed_while_four_consumers_run_is_never_exceeded_and_nobody_is_stuck(stage: Stage):
    stage.watcher.channel("a", max_concurrency=3)
    ids = stage.watcher.send_batch("a", 400)
    crew = Crew(stage, 4, hold=1)
    operator = stage.hire(patient=True)
    for limit in [None, 3, 1, None, 2, 5, 1, 3, None, 3]:
        operator.channel("a", max_concurrency=limit)
        # A lower limit does not call leases back: it counts as soon as those above it have been settled.
        if limit is not None:
            settled = "select count(*) <= %s from menzil.queue where channel = 'a' and status = 'processing'"
            poll(lambda: stage.watcher.one(settled, limit), "leases above the limit are settled")  # noqa: B023
            looks = iter(range(5))
            sample(stage, "a", limit, lambda: next(looks, None) is None)  # noqa: B023
    poll(lambda: stage.live() == 0, "everything is done")
    crew.stop()
    assert stage.watcher.one("select count(distinct id) from menzil.archive") == len(ids)
    stage.sweep()
    assert stage.watcher.one("select in_flight from menzil.channels where name = 'a'") == 0


def test_rate_limit_holds_in_every_window_under_four_consumers(stage: Stage):
    stage.watcher.channel("a", release_interval_ms=100, release_count=7)
    stage.watcher.send_batch("a", 60)
    stage.watcher.send_batch("b", 200)
    crew = Crew(stage, 4)
    poll(lambda: stage.live() == 0, "everything is done")
    crew.stop()
    times: list[datetime] = [
        at for (at,) in stage.watcher.run("select leased_at from menzil.archive where channel = 'a' order by leased_at")
    ]
    assert len(times) == 60
    for first, eighth in zip(times, times[7:], strict=False):
        assert eighth - first >= timedelta(milliseconds=100)


def test_slot_that_comes_back_while_the_line_is_being_read_wakes_the_channel(stage: Stage):
    """One consumer folds a late message into a channel at its limit, another one folds the slot that came back."""
    stage.watcher.channel("a", max_concurrency=1)
    stage.watcher.send_batch("a", 2)
    consumer, reader, settler = stage.hire(), stage.hire(), stage.hire()
    leases = consumer.take(1)
    assert consumer.dequeue() == []
    stage.watcher.run("select menzil.message_create('a', 'x', '2000-01-01')")
    with reader.open():
        assert reader.dequeue() == []
        assert settler.complete(leases) == ["settled"]
        stage.sweep()
    stage.sweep()
    for _ in range(2):
        leases = consumer.take(1)
        consumer.complete(leases)


def test_slot_that_comes_back_while_its_gate_is_in_use_is_not_lost(stage: Stage):
    stage.watcher.channel("a", max_concurrency=2)
    stage.watcher.send_batch("a", 4)
    one, two = stage.hire(), stage.hire()
    leases = one.take(1)
    with two.open():
        assert len(two.take(1)) == 1
        assert one.complete(leases) == ["settled"]
        stage.sweep()
        assert one.dequeue(5) == []
    assert len(one.take(1)) == 1
    assert stage.nothing_is_ready()


def test_consumer_returns_soon_while_another_holds_the_gate_of_its_channel(stage: Stage):
    stage.watcher.channel("a", max_concurrency=10)
    stage.watcher.send("a")
    one, two = stage.hire(), stage.hire()
    with one.open():
        assert len(one.take(1)) == 1
        stage.watcher.send("a", priority=5)
        stage.watcher.send("b")
        assert [lease.channel for lease in two.take(1)] == ["b"]
        assert two.dequeue() == []
    assert len(two.take(1)) == 1


def test_limit_that_is_being_set_while_a_lane_would_be_born_is_obeyed(stage: Stage):
    """The lane is born under the lock of its gate: it is not born while the limit is not decided."""
    operator, consumer = stage.hire(), stage.hire()
    stage.watcher.send_batch("a", 5)
    with operator.open():
        operator.channel("a", max_concurrency=2)
        other = stage.watcher.send("b")
        assert [lease.id for lease in consumer.take(1)] == [other]
        assert consumer.dequeue(5) == []
    assert len(consumer.take(2)) == 2
    assert stage.nothing_is_ready()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_limit_that_is_set_while_a_lane_is_being_born_waits_and_counts_what_was_leased(stage: Stage, end: str):
    operator, consumer, other = stage.hire(patient=True), stage.hire(), stage.hire()
    stage.watcher.send_batch("a", 6)
    with consumer.open():
        assert len(consumer.take(3)) == 3
        limit = stage.start(operator.channel, "a", max_concurrency=4)
        stage.until_waiting(operator, for_whom=consumer)
        consumer.run(end)
    limit.result()
    room = 1 if end == "commit" else 4
    assert len(other.take(room)) == room
    assert stage.nothing_is_ready()


SETS = {
    "pause": "select menzil.channel_pause('a')",
    "limit": "select menzil.channel_set('a', 1)",
}


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("what", SETS)
def test_limit_that_is_set_in_a_snapshot_older_than_the_lane_fails(stage: Stage, what: str, isolation: str):
    """The snapshot does not show the lane, so the lane would not be told to ask its gate."""
    operator, consumer = stage.hire(), stage.hire()
    operator.begin(isolation)
    operator.run("select count(*) from menzil.channels")
    stage.watcher.send("a")
    leases = consumer.take(1)
    with pytest.raises(psycopg.errors.SerializationFailure):
        operator.run(SETS[what])
    operator.rollback()
    operator.run(SETS[what])
    stage.watcher.send_batch("a", 3)
    assert stage.nothing_is_ready()
    assert consumer.complete(leases) == ["settled"]


@pytest.mark.parametrize("what", SETS)
def test_limit_that_commits_between_the_snapshot_and_the_lock_of_a_birth_is_obeyed(stage: Stage, what: str):
    """The consumer is stopped before it locks the gate. Its snapshot shows a channel without a limit."""
    operator, consumer = stage.hire(), stage.hire(patient=True)
    stage.watcher.run(f"""
        create function public.stop_here() returns boolean language plpgsql as $$
        begin {WAIT} return true; end $$""")
    text = stage.watcher.one("select pg_get_functiondef('menzil._lock_lanes'::regproc)")
    text, places = re.subn(
        r"where (\w\.channel_id = u\.channel_id for update)", r"where public.stop_here() and \1", text
    )
    assert places == 1, "a gate is locked otherwise now"
    stage.watcher.run(text)
    pause = Pause(stage, consumer)
    stage.watcher.send_batch("a", 3)
    taking = stage.start(consumer.dequeue, 3)
    pause.reached()
    operator.run(SETS[what])
    pause.open()
    taken = taking.result()
    stage.sweep()
    taken += [lease for _ in range(3) for lease in consumer.dequeue(3)]
    assert len(taken) == (1 if what == "limit" else 0)
    assert stage.nothing_is_ready()


@pytest.mark.parametrize(
    "line", ["v_mine := array", "if cardinality(v_mine)"], ids=["before the lock", "after the lock"]
)
def test_slot_that_comes_back_while_the_lane_changes_is_used(stage: Stage, line: str):
    """The fold that gives the slot back finds the lane held by a fold of new messages, which ends at that moment."""
    one, folding, waking = stage.hire(), stage.hire(), stage.hire(patient=True)
    stage.watcher.channel("a", max_concurrency=1)
    stage.watcher.send_batch("a", 3)
    leases = one.take(1)
    assert one.dequeue() == [], "the gate holds the lane"
    stage.watcher.send("a")
    with folding.open():
        assert folding.dequeue() == [], "it folded the new message into the lane"
        one.complete(leases)
        pause = pause_before(stage, waking, "_wake_lanes", line)
        woken = stage.start(waking.dequeue)
        pause.reached()
    pause.open()
    found = woken.result() or one.take(1)
    assert [lease.channel for lease in found] == ["a"]
