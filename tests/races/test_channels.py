"""Pause, resume, release, migrations and schedules while others are at work."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from menzil.install import migrate
from tests.races.actor import Actor
from tests.races.stage import Stage, poll


def test_pause_waits_for_a_dequeue_that_is_half_way_and_holds_from_then_on(stage: Stage):
    stage.watcher.send_batch("a", 3)
    consumer, operator = stage.hire(), stage.hire(patient=True)
    with consumer.open():
        leases = consumer.take(1)
        pausing = stage.start(operator.run, "select menzil.channel_pause('a')")
        stage.until_waiting(operator, for_whom=consumer)
    pausing.result()
    assert stage.nothing_is_ready()
    assert consumer.complete(leases) == ["settled"]
    assert stage.nothing_is_ready()


def test_open_pause_does_not_block_consumers_of_the_channel(stage: Stage):
    stage.watcher.send_batch("a", 2)
    stage.sweep()
    consumer, operator = stage.hire(), stage.hire()
    with operator.open():
        operator.run("select menzil.channel_pause('a')")
        consumer.dequeue(2, "a")
        stage.watcher.send("b")
        assert len(consumer.take(1, "b")) == 1
        assert stage.watcher.send("a") > 0


def test_resume_wakes_a_paused_channel_and_what_was_sent_meanwhile(stage: Stage):
    consumer = stage.hire()
    ids = [stage.watcher.send("a"), stage.watcher.send("a", ordering_key="k")]
    stage.watcher.run("select menzil.channel_pause('a')")
    ids += [stage.watcher.send("a", priority=3), stage.watcher.send("a", ordering_key="other")]
    assert stage.nothing_is_ready()
    stage.watcher.run("select menzil.channel_resume('a')")
    assert {lease.id for lease in consumer.take(4)} == set(ids)


def test_pause_that_rolls_back_leaves_the_channel_open(stage: Stage):
    sent = stage.watcher.send("a")
    consumer, operator = stage.hire(), stage.hire()
    with operator.open():
        operator.run("select menzil.channel_pause('a')")
        operator.rollback()
    assert [lease.id for lease in consumer.take(1)] == [sent]


def test_pause_and_resume_under_four_consumers_lose_nothing(stage: Stage):
    ids = stage.watcher.send_batch("a", 300)
    operator = stage.hire(patient=True)
    barrier = threading.Barrier(5)

    def work(actor: Actor) -> int:
        barrier.wait()
        done = 0
        while actor.one("select count(*) from menzil.queue") > 0:
            done += actor.complete(actor.dequeue(3)).count("settled")
        return done

    crew = [stage.start(work, stage.hire(patient=True)) for _ in range(4)]
    barrier.wait()
    for _ in range(20):
        operator.run("select menzil.channel_pause('a')")
        operator.run("select menzil.channel_resume('a')")
    assert sum(future.result(timeout=60) for future in crew) == len(ids)


def test_message_of_a_transaction_older_than_the_release_is_still_drained(stage: Stage):
    business, consumer = stage.hire(), stage.hire()
    with business.open():
        sent = business.send("a")
        stage.watcher.run("select menzil.channel_release('a')")
        with pytest.raises(psycopg.Error) as refused:
            stage.watcher.send("a")
        assert refused.value.sqlstate in ("55000", "42704")
    [lease] = consumer.take(1)
    assert lease.id == sent
    assert consumer.complete([lease]) == ["settled"]
    stage.sweep()
    assert stage.watcher.run("select 1 from menzil.channels where name = 'a'") == []


def test_worker_that_names_its_channel_gets_a_message_older_than_the_release(stage: Stage):
    business, consumer = stage.hire(), stage.hire()
    with business.open():
        sent = business.send("a")
        stage.watcher.run("select menzil.channel_release('a')")
    assert [lease.id for lease in consumer.take(1, "a")] == [sent]


def test_released_channel_takes_nothing_new_and_leaves_when_its_last_lease_is_settled(stage: Stage):
    stage.watcher.send("a")
    consumer = stage.hire()
    leases = consumer.take(1)
    stage.watcher.run("select menzil.channel_release('a')")
    stage.sweep()
    assert stage.watcher.one("select released from menzil.channels where name = 'a'") is True
    with consumer.open():
        consumer.complete(leases)
        stage.sweep()
        assert stage.watcher.one("select count(*) from menzil.channels where name = 'a'") == 1
    stage.sweep()
    assert stage.watcher.one("select count(*) from menzil.channels where name = 'a'") == 0


def test_two_operators_that_make_one_channel_make_it_once(stage: Stage):
    one, two = stage.hire(), stage.hire(patient=True)
    with one.open():
        one.channel("new", max_concurrency=1)
        other = stage.start(two.channel, "new", max_concurrency=2)
        stage.until_waiting(two, for_whom=one)
    other.result()
    assert stage.watcher.run("select max_concurrency from menzil.channels where name = 'new'") == [(2,)]


def test_migration_while_consumers_and_senders_run_disturbs_nobody(stage: Stage):
    over = threading.Event()

    def send(actor: Actor) -> int:
        count = 0
        # A pause after each: messages of one ordering key leave one by one, and thousands of them take a minute.
        while not over.wait(0.02):
            actor.send_batch("a", 3)
            actor.send("b", ordering_key="k")
            count += 4
        return count

    def work(actor: Actor) -> int:
        done = 0
        while True:
            taken = actor.dequeue(10)
            done += actor.complete(taken).count("settled")
            if not taken and over.is_set() and actor.one("select count(*) from menzil.queue") == 0:
                return done

    senders = [stage.start(send, stage.hire(patient=True)) for _ in range(2)]
    workers = [stage.start(work, stage.hire(patient=True)) for _ in range(2)]
    for _ in range(3):
        assert migrate(stage.dsn, reapply=True).code_applied
    over.set()
    sent = sum(future.result(timeout=60) for future in senders)
    assert sent > 100
    assert sum(future.result(timeout=200) for future in workers) == sent


def due_schedules(stage: Stage, count: int) -> None:
    for number in range(count):
        stage.watcher.run("select menzil.schedule_create(%s, '* * * * *', 'UTC', 'a', '0')", f"s{number}")
    stage.watcher.run("update menzil.schedule set next_at = date_trunc('minute', now())")


def test_two_schedulers_fire_each_slot_once(stage: Stage):
    due_schedules(stage, 20)
    barrier = threading.Barrier(4)
    actors = [stage.hire() for _ in range(4)]

    def fire(actor: Actor) -> int:
        barrier.wait()
        return actor.one("select menzil.schedule_fire_due()")

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(fire, actors)) == 20
    assert stage.live() == 20


def test_schedule_that_another_is_firing_is_left_to_him(stage: Stage):
    due_schedules(stage, 1)
    one, two = stage.hire(), stage.hire()
    with one.open():
        assert one.one("select menzil.schedule_fire_due()") == 1
        assert two.one("select menzil.schedule_fire_due()") == 0
        two.dequeue()
    assert two.one("select menzil.schedule_fire_due()") == 0
    assert stage.live() == 1


def test_slot_whose_firing_rolled_back_is_fired_by_another(stage: Stage):
    due_schedules(stage, 1)
    one, two = stage.hire(), stage.hire()
    with one.open():
        assert one.one("select menzil.schedule_fire_due()") == 1
        one.rollback()
    poll(lambda: bool(two.dequeue()), "a dequeue fires the schedule")
    assert stage.live() == 1
