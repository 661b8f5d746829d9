"""The fresh way of a dequeue leases lines of an idle lane from the log in one statement.

Its snapshot may be older than its lock. It is stopped between the two, and others take or cancel what the snapshot
shows.
"""

from __future__ import annotations

import pytest

from tests.races.actor import Actor
from tests.races.pause import WAIT, Pause
from tests.races.stage import Stage

LOCK = "and l.tail_due is null and not l.gated"


@pytest.fixture
def slow(stage: Stage) -> Actor:
    return stage.hire(patient=True)


@pytest.fixture
def idle(stage: Stage) -> Stage:
    """The lane exists and nothing waits in it."""
    stage.watcher.send("a")
    stage.watcher.complete(stage.watcher.take(1))
    return stage


def pause_before_the_lock(stage: Stage, actor: Actor) -> Pause:
    """After the snapshot of the statement was taken, and before the lane is locked."""
    stage.watcher.run(f"""
        create function public.stop_here() returns boolean language plpgsql as $$
        begin {WAIT} return true; end $$""")
    text = stage.watcher.one("select pg_get_functiondef('menzil.message_dequeue'::regproc)")
    assert text.count(LOCK) == 1, "the fresh way locks its lane otherwise now"
    stage.watcher.run(text.replace(LOCK, f"and public.stop_here() {LOCK}"))
    return Pause(stage, actor)


@pytest.mark.parametrize("then", ["hold", "complete", "fail"])
def test_lines_that_another_takes_between_the_snapshot_and_the_lock_are_leased_once(
    idle: Stage, slow: Actor, then: str
) -> None:
    quick = idle.hire()
    pause = pause_before_the_lock(idle, slow)
    ids = [idle.watcher.send("a") for _ in range(3)]
    taking = idle.start(slow.dequeue, 5)
    pause.reached()
    held = quick.take(3)
    if then == "complete":
        quick.complete(held)
    elif then == "fail":
        assert quick.fail(held, wait="0 s") == ["retry"] * 3
    pause.open()
    taken = taking.result()
    assert sorted(lease.id for lease in held) == ids
    if then == "fail":
        taken += idle.hire().take(3 - len(taken))
        assert sorted((lease.id, lease.attempt) for lease in taken) == [(number, 2) for number in ids]
    else:
        assert taken == []
    assert idle.nothing_is_ready()


def test_message_that_is_cancelled_between_the_snapshot_and_the_lock_is_not_leased(idle: Stage, slow: Actor) -> None:
    pause = pause_before_the_lock(idle, slow)
    first, second = idle.watcher.send("a"), idle.watcher.send("a")
    taking = idle.start(slow.dequeue, 5)
    pause.reached()
    assert idle.watcher.cancel(first) is True
    pause.open()
    taken = taking.result()
    taken += idle.hire().take(1) if not taken else []
    assert [lease.id for lease in taken] == [second]
    assert idle.nothing_is_ready()


def test_what_was_just_sent_to_an_idle_lane_becomes_no_run(idle: Stage) -> None:
    """Otherwise the tests of this file would stop no dequeue."""
    consumer = idle.hire()
    idle.watcher.run("create table public.runs (n integer)")
    idle.watcher.run("""
        create function public.count_run() returns trigger language plpgsql as $$
        begin insert into public.runs values (new.n); return new; end $$""")
    idle.watcher.run("create trigger t after insert on menzil.run for each row execute function public.count_run()")
    consumer.dequeue()
    ids = [idle.watcher.send("a") for _ in range(3)]
    assert [lease.id for lease in consumer.dequeue(5)] == ids
    assert idle.watcher.run("select * from public.runs") == []
