"""The short way of a dequeue locks a lane and reads its runs in one statement: its snapshot may be older than the lock.

It is stopped between the two, and the lane changes meanwhile. The old snapshot shows messages in a place that they have
left: none of them may be leased from there.
"""

from __future__ import annotations

import re

import pytest

from tests.races.actor import LEASE, Actor, Lease
from tests.races.pause import WAIT, Pause
from tests.races.stage import Stage, poll

NEXT = "select id, channel, num_attempts, ordering_key from menzil.message_next('{}', '{}', %s, %s, %s)"
LOCK = re.compile(r"l\.next_at <= v_now (order by l\.next_at limit 1 )?for update skip locked")
SOON = "not between 0 and 100000 "
IN_TIME = "< v_now + interval '50 ms'"


def next_ones(actor: Actor, limit: int, channels: list[str] | None) -> list[Lease]:
    return [Lease(*row) for row in actor.run(NEXT, LEASE, limit, channels)]


def pause_before_the_lock(stage: Stage, actor: Actor) -> Pause:
    """After the snapshot of the statement was taken, and before the lane is locked."""
    stage.watcher.run(f"""
        create function public.stop_here() returns boolean language plpgsql as $$
        begin {WAIT} return true; end $$""")
    text = stage.watcher.one("select pg_get_functiondef('menzil.message_next'::regproc)")
    assert len({found[1] for found in LOCK.finditer(text)}) == 2, "the short way locks its lane otherwise now"
    assert SOON in text, "the short way is taken at other times now"
    assert IN_TIME in text, "the short way is given up at another time now"
    # The last full look may be longer ago, and the call may take longer: a slow machine keeps to the short way.
    text = text.replace(SOON, "not between 0 and 100000000 ").replace(IN_TIME, "< v_now + interval '100 s'")
    stage.watcher.run(LOCK.sub(r"public.stop_here() and \g<0>", text))
    return Pause(stage, actor)


@pytest.fixture(params=[["a"], None], ids=["one channel", "any channel"])
def channels(request: pytest.FixtureRequest) -> list[str] | None:
    return request.param


@pytest.mark.parametrize("limit", [1, 6])
@pytest.mark.parametrize("change", ["leased from", "cut", "emptied"])
def test_lane_that_changes_between_the_snapshot_and_the_lock_gives_each_message_once(
    stage: Stage, channels: list[str] | None, limit: int, change: str
):
    """When a retry is folded, the run at the head is cut and the lane counts from its beginning again."""
    ids = stage.watcher.send_batch("a", 40)
    slow, quick = stage.hire(patient=True), stage.hire()
    held = quick.take(4, "a")
    taken = held[:2]
    pause = pause_before_the_lock(stage, slow)
    taking = stage.start(next_ones, slow, limit, channels)
    pause.reached()
    if change == "cut":
        assert quick.fail(held[2:], wait="0 s") == ["retry", "retry"]
        stage.sweep()
    else:
        taken += held[2:] + quick.take(36 if change == "emptied" else 7, "a")
    pause.open()
    taken += taking.result()
    got = [lease.id for lease in taken]
    assert len(got) == len(set(got)), "a message was leased twice"
    taken += quick.take(40 - len(set(got)), "a") if len(set(got)) < 40 else []
    assert sorted(lease.id for lease in taken) == ids
    assert stage.nothing_is_ready()


NEXT_AFTER = "select id, outcome from menzil.message_next(%s, %s, %s, %s, %s) order by 1"


def always_the_short_way(stage: Stage) -> None:
    text = stage.watcher.one("select pg_get_functiondef('menzil.message_next'::regproc)")
    assert SOON in text, "the short way is taken at other times now"
    stage.watcher.run(text.replace(SOON, "not between 0 and 100000000 "))


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("limit", [1, 5])
@pytest.mark.parametrize("shown", [5, 4], ids=["all of its lease", "a part of its lease"])
def test_next_that_waits_for_an_open_settle_of_its_batch_does_not_hold_the_lane(
    stage: Stage, channels: list[str] | None, shown: int, limit: int, end: str
):
    ids = stage.watcher.send_batch("a", 40)
    slow, settler, other = stage.hire(patient=True), stage.hire(), stage.hire()
    batch = slow.take(5, "a")
    always_the_short_way(stage)
    with settler.open():
        assert settler.complete(batch[2:3]) == ["settled"]
        taking = stage.start(slow.run, NEXT_AFTER, ids[:shown], [1] * shown, LEASE, limit, channels)
        stage.until_waiting(slow, for_whom=settler)
        assert [lease.id for lease in other.dequeue(5, "a")] == ids[5:10]
        settler.run(end)
    refused = [(ids[2], "unknown")] if end == "commit" else []
    assert taking.result() == refused + [(number, None) for number in ids[10 : 10 + limit]]
    assert {stage.watcher.status(number) for number in ids[:shown]} == {"completed"}


def test_next_that_has_waited_for_a_settle_leases_from_then_on(stage: Stage, channels: list[str] | None):
    stage.watcher.send_batch("a", 40)
    slow, settler = stage.hire(patient=True), stage.hire()
    batch = slow.take(5, "a")
    always_the_short_way(stage)
    with settler.open():
        assert settler.complete(batch) == ["settled"] * 5
        text = "select min(unlock_at) - clock_timestamp() from menzil.message_next(%s, %s, 2000, 5, %s)"
        taking = stage.start(slow.run, text, [lease.id for lease in batch], [1] * 5, channels)
        stage.until_waiting(slow, for_whom=settler)
        begun = stage.watcher.one("select clock_timestamp()")
        over = "select clock_timestamp() > %s + interval '1 s'"
        poll(lambda: stage.watcher.one(over, begun), "half of the time of a lease has passed")
        settler.run("rollback")
    [(left,)] = taking.result()
    assert left.total_seconds() > 1.5


@pytest.mark.parametrize("shown", [5, 4], ids=["all of its lease", "a part of its lease"])
def test_next_that_waits_for_a_settle_whose_transaction_cancels_a_message_of_the_lane_does_not_deadlock(
    stage: Stage, channels: list[str] | None, shown: int
):
    ids = stage.watcher.send_batch("a", 40)
    slow, settler = stage.hire(patient=True), stage.hire()
    batch = slow.take(5, "a")
    always_the_short_way(stage)
    with settler.open():
        assert settler.complete(batch[2:3]) == ["settled"]
        taking = stage.start(slow.run, NEXT_AFTER, ids[:shown], [1] * shown, LEASE, 5, channels)
        stage.until_waiting(slow, for_whom=settler)
        assert settler.cancel(ids[-1]) is True
    assert taking.result() == [(ids[2], "unknown")] + [(number, None) for number in ids[5:10]]
    assert [lease.id for lease in slow.take(29, "a")] == ids[10:-1]
    assert stage.nothing_is_ready()


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("call", ["message_next", "message_dequeue"])
def test_lane_that_was_waited_for_is_changed_by_the_subtransaction_that_locked_it(
    stage: Stage, channels: list[str] | None, limit: int, call: str
):
    """A row that a subtransaction locks and its parent changes gets a multixact, which every reader would look up."""
    stage.watcher.send_batch("a", 40)
    stage.sweep()
    slow, holder = stage.hire(patient=True), stage.hire()
    always_the_short_way(stage)
    text = stage.watcher.one("select pg_get_functiondef('menzil._wait_for_lane'::regproc)")
    stage.watcher.run(text.replace("'50ms'", "'20s'"))  # a slow machine waits as long as it takes
    with slow.open():
        own = int(slow.one("select pg_current_xact_id()::text"))
        with holder.open():
            held = holder.take(1, "a")
            if call == "message_next":
                taking = stage.start(next_ones, slow, limit, channels)
            else:
                taking = stage.start(slow.dequeue, limit, *(channels or []))
            stage.until_waiting(slow, for_whom=holder)
        taken = taking.result()
        changed_by = int(stage.watcher.one("select l.xmax::text from menzil.lane l"))
    assert len(taken) == limit
    assert {lease.id for lease in taken}.isdisjoint(lease.id for lease in held)
    assert changed_by > own, "numbers of multixacts are lower here than those of transactions"
