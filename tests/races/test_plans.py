"""Plans against everybody: two sessions that step, operators, consumers, redrives by hand. Nothing goes two ways."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.races.actor import Actor, Lease
from tests.races.stage import Stage, poll


def create(actor: Actor, kind: str, rate: float | None = None, key: str | None = None, **where: Any) -> int:
    return actor.one("select menzil.plan_create(%s, %s, %s::float8, null, %s)", kind, Jsonb(where), rate, key)


def begin(actor: Actor, kind: str, rate: float | None = None, **where: Any) -> int:
    number = create(actor, kind, rate, **where)
    actor.run("select menzil.plan_run(%s)", number)
    return number


def step(actor: Actor, number: int, limit: int = 1000) -> int:
    return actor.one("select menzil.plan_step(%s, %s)", number, limit)


def status(actor: Actor, number: int) -> str:
    return actor.one("select status from menzil.plans where id = %s", number)


def kill(actor: Actor, count: int, channel: str = "a") -> list[int]:
    sent = actor.send_batch(channel, count)
    actor.fail(actor.take(count, channel), "[PERMANENT] no")
    return sent


def finish(actor: Actor, number: int, limit: int) -> int:
    made = 0
    while status(actor, number) == "running":
        made += step(actor, number, limit)
    return made


def test_rival_steppers_make_each_message_once(stage: Stage):
    dead = kill(stage.watcher, 600)
    number = begin(stage.watcher, "redrive", channel="a")
    actors = [stage.hire() for _ in range(4)]
    running: list[Future[Any]] = [stage.start(finish, actor, number, 7 + n) for n, actor in enumerate(actors)]
    assert sum(future.result() for future in running) == 600
    rows = stage.watcher.run("select redrive_of from menzil.queue order by redrive_of")
    assert [row[0] for row in rows] == dead
    assert stage.watcher.run("select done, skipped, status from menzil.plans") == [(600, 0, "done")]


def test_second_stepper_does_not_wait_for_one_that_stays_open(stage: Stage):
    kill(stage.watcher, 20)
    number = begin(stage.watcher, "redrive", channel="a")
    one, two = stage.hire(), stage.hire()
    with one.open():
        assert step(one, number, 10) == 10
        assert step(two, number, 10) == 0
        assert two.one("select menzil.job_run('plans')") == 0
        assert two.one("select last_error from menzil.jobs where name = 'plans'") is None
    assert step(two, number) == 10
    assert stage.watcher.one("select count(distinct redrive_of) from menzil.queue") == 20


def test_step_that_rolls_back_has_done_nothing(stage: Stage):
    dead = kill(stage.watcher, 10)
    number = begin(stage.watcher, "redrive", channel="a")
    one = stage.hire()
    with one.open():
        assert step(one, number, 6) == 6
        one.rollback()
    assert stage.watcher.run("select done, skipped from menzil.plans") == [(0, 0)]
    assert finish(stage.watcher, number, 4) == 10
    rows = stage.watcher.run("select redrive_of from menzil.queue order by id")
    assert [row[0] for row in rows] == dead


@pytest.mark.parametrize("kind", ["redrive", "replay", "cancel"])
def test_open_step_holds_up_no_consumer_and_no_sender(stage: Stage, kind: str):
    kill(stage.watcher, 10)
    live = stage.watcher.send_batch("a", 20)
    number = begin(stage.watcher, kind, channel="a")
    stepper, consumer = stage.hire(), stage.hire()
    with stepper.open():
        assert step(stepper, number, 5) == 5
        stage.watcher.send("a")
        stage.watcher.send("b")
        left = 15 if kind == "cancel" else 20
        leases = consumer.take(left + 2)
        assert consumer.complete(leases) == ["settled"] * (left + 2)
        assert {lease.id for lease in leases} & set(live) == set(live[5:] if kind == "cancel" else live)
    assert len(stage.watcher.dequeue(20)) == (0 if kind == "cancel" else 5)


def test_operators_do_not_wait_for_a_step_that_stays_open(stage: Stage):
    kill(stage.watcher, 20)
    number = begin(stage.watcher, "redrive", channel="a")
    stepper, operator = stage.hire(), stage.hire()
    with stepper.open():
        step(stepper, number, 10)
        operator.run("select menzil.plan_pause(%s)", number)
        assert status(operator, number) == "paused"
        operator.run("select menzil.plan_run(%s)", number)
        # It cannot take back what is not committed: the job will.
        assert operator.one("select menzil.plan_stop(%s, true)", number) == 0
        assert status(operator, number) == "stopped"
    assert step(stage.watcher, number) == 0
    assert stage.watcher.one("select menzil.job_run('plans')") == 10
    assert stage.watcher.run("select status, done, taken_back from menzil.plans") == [("stopped", 10, 10)]
    assert stage.nothing_is_ready()


def test_step_that_ends_a_plan_beside_a_pause_leaves_it_paused(stage: Stage):
    kill(stage.watcher, 5)
    number = begin(stage.watcher, "redrive", channel="a")
    stepper, operator = stage.hire(patient=True), stage.hire()
    with operator.open():
        operator.run("select menzil.plan_pause(%s)", number)
        stepping = stage.start(step, stepper, number)
        stage.until_waiting(stepper, for_whom=operator)
    assert stepping.result() == 5
    assert status(stage.watcher, number) == "paused"
    stage.watcher.run("select menzil.plan_run(%s)", number)
    assert finish(stage.watcher, number, 10) == 0
    assert status(stage.watcher, number) == "done"


def test_stepper_does_not_wait_for_a_stop_that_stays_open(stage: Stage):
    kill(stage.watcher, 5)
    number = begin(stage.watcher, "redrive", channel="a")
    stepper, operator = stage.hire(), stage.hire()
    with operator.open():
        operator.run("select menzil.plan_stop(%s)", number)
        assert step(stepper, number) == 0
        operator.rollback()
    assert step(stepper, number) == 5


def test_same_form_sent_twice_at_once_makes_one_plan(stage: Stage):
    one, two = stage.hire(), stage.hire(patient=True)
    one.begin()
    first = create(one, "redrive", key="form", channel="a")
    second = stage.start(create, two, "redrive", key="form", channel="a")
    stage.until_waiting(two, for_whom=one)
    one.commit()
    assert second.result() == first
    assert stage.watcher.one("select count(*) from menzil.plans") == 1


def test_plan_passes_over_letters_that_another_session_is_redriving(stage: Stage):
    dead = kill(stage.watcher, 30)
    number = begin(stage.watcher, "redrive", channel="a")
    other = stage.hire()
    with other.open():
        assert other.one("select menzil.redrive_endpoint('a', null, 3)") == 3
        assert step(stage.watcher, number) == 27
    assert stage.watcher.run("select done, skipped, status from menzil.plans") == [(27, 3, "done")]
    rows = stage.watcher.run("select redrive_of from menzil.queue order by redrive_of")
    assert [row[0] for row in rows] == dead


def test_plans_and_redrives_by_hand_bring_each_letter_back_once(stage: Stage):
    dead = kill(stage.watcher, 400)
    numbers = [begin(stage.watcher, "redrive", channel="a") for _ in range(2)]
    actors = [stage.hire() for _ in range(3)]
    running: list[Future[Any]] = []
    running += [stage.start(finish, actor, number, 9) for actor, number in zip(actors, numbers, strict=False)]
    running.append(
        stage.start(lambda: [actors[2].one("select menzil.redrive_endpoint('a', null, 5)") for _ in range(20)])
    )
    for future in running:
        future.result()
    stage.watcher.one("select menzil.redrive_all()")
    rows = stage.watcher.run("select redrive_of from menzil.queue order by redrive_of")
    assert [row[0] for row in rows] == dead


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_taking_back_waits_for_a_dequeue_that_is_at_the_lane(stage: Stage, end: str):
    kill(stage.watcher, 5)
    number = begin(stage.watcher, "redrive", channel="a")
    step(stage.watcher, number)
    consumer, operator = stage.hire(), stage.hire(patient=True)
    with consumer.open():
        leases = consumer.take(2)
        taking = stage.start(operator.one, "select menzil.plan_stop(%s, true)", number)
        stage.until_waiting(operator, for_whom=consumer)
        consumer.run(end)
    assert taking.result() == (3 if end == "commit" else 5)
    assert consumer.complete(leases) == (["settled"] * 2 if end == "commit" else ["unknown"] * 2)
    assert stage.nothing_is_ready()


@pytest.mark.parametrize("rate", [None, 400.0])
def test_taking_back_beside_busy_consumers_delivers_or_takes_back_each_message(stage: Stage, rate: float | None):
    kill(stage.watcher, 400)
    number = begin(stage.watcher, "redrive", rate, channel="a")
    consumers = [stage.hire() for _ in range(3)]
    served: list[Lease] = []
    done = threading.Event()

    def work(actor: Actor) -> None:
        while not done.is_set():
            leases = actor.dequeue(3, "a")
            served.extend(leases)
            assert set(actor.complete(leases)) <= {"settled"}

    running = [stage.start(work, actor) for actor in consumers]
    operator = stage.hire(patient=True)
    while not operator.one("select bool_and(finished) from menzil.plan_channel"):
        step(operator, number, 50)
    poll(lambda: len(served) >= 30, "some are served")
    taken = operator.one("select menzil.plan_stop(%s, true)", number)
    poll(lambda: stage.live() == 0, "nothing is left")
    done.set()
    for future in running:
        future.result()
    assert len(served) == len({lease.id for lease in served})
    assert len(served) + taken == 400
    letters = dict(stage.watcher.run("select status, count(*) from menzil.dlq group by 1"))
    assert letters == {name: count for name, count in (("failed", taken), ("redriven", len(served))) if count}
    ends = dict(
        stage.watcher.run("select status, count(*) from menzil.archive where redrive_of is not null group by 1")
    )
    assert ends == {name: count for name, count in (("cancelled", taken), ("completed", len(served))) if count}


def test_cancel_of_many_beside_busy_consumers_ends_each_message_once(stage: Stage):
    for n in range(6):
        stage.watcher.send_batch("a", 100)
        for key in range(5):
            stage.watcher.send("a", ordering_key=f"k{key}", priority=n % 3)
    number = begin(stage.watcher, "cancel", all=True)
    consumers = [stage.hire() for _ in range(3)]
    served: list[Lease] = []
    done = threading.Event()

    def work(actor: Actor) -> None:
        while not done.is_set():
            leases = actor.dequeue(2)
            served.extend(leases)
            assert set(actor.complete(leases)) <= {"settled"}

    running = [stage.start(work, actor) for actor in consumers]
    operator = stage.hire(patient=True)
    cancelled = finish(operator, number, 40)
    poll(lambda: stage.live() == 0, "nothing is left")
    done.set()
    for future in running:
        future.result()
    ids = [lease.id for lease in served]
    assert len(ids) == len(set(ids))
    assert len(ids) + cancelled == 630
    ends = dict(stage.watcher.run("select status, count(*) from menzil.archive group by 1"))
    assert ends == {"completed": len(ids), "cancelled": cancelled}
    assert stage.watcher.one("select count(*) from menzil.key_queue") == 0


def test_open_cancel_of_many_that_rolls_back_gives_every_message_back(stage: Stage):
    sent = stage.watcher.send_batch("a", 50)
    number = begin(stage.watcher, "cancel", channel="a")
    operator, consumer = stage.hire(), stage.hire()
    with operator.open():
        assert step(operator, number, 30) == 30
        assert {lease.id for lease in consumer.take(20, "a")} == set(sent[30:])
        assert consumer.dequeue(5, "a") == []
        operator.rollback()
    assert {lease.id for lease in consumer.take(30, "a")} == set(sent[:30])


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_step_in_an_old_snapshot_makes_nothing_twice(stage: Stage, isolation: str):
    dead = kill(stage.watcher, 20)
    number = begin(stage.watcher, "redrive", channel="a")
    old = stage.hire()
    old.begin(isolation)
    old.run("select count(*) from menzil.plans")
    assert step(stage.watcher, number, 10) == 10
    with pytest.raises(Exception, match="could not serialize"):
        step(old, number, 10)
    old.rollback()
    assert step(stage.watcher, number) == 10
    rows = stage.watcher.run("select redrive_of from menzil.queue order by id")
    assert [row[0] for row in rows] == dead


def test_letters_that_are_redriven_by_hand_during_a_step_are_left_out_of_it(stage: Stage):
    """A step meets letters that changed after its query began; _plan_letters says what that query must not do."""
    dead = kill(stage.watcher, 1200)
    letters = [row[0] for row in stage.watcher.run("select id from menzil.dlq order by id desc")]
    hand, stepper = stage.hire(), stage.hire()

    def by_hand(some: list[int]) -> None:
        for letter in some:
            with suppress(psycopg.errors.ObjectNotInPrerequisiteState):  # the step was quicker
                hand.one("select menzil.redrive_message(%s)", letter)

    for first in range(0, 1200, 200):
        number = begin(stage.watcher, "redrive", ids=letters[first : first + 200])
        other = stage.start(by_hand, letters[first : first + 100])
        assert step(stepper, number) <= 200
        other.result()
    stage.watcher.one("select menzil.redrive_all()")
    rows = stage.watcher.run("select redrive_of from menzil.queue order by redrive_of")
    assert [row[0] for row in rows] == dead
