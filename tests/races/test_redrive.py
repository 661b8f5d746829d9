"""Redrive against redrive, cancel and consumers: each dead letter goes once, and its ordering key stays exclusive."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest

from tests.races.actor import Actor, Lease
from tests.races.stage import Stage, poll


def kill(actor: Actor, channel: str = "a", **options: object) -> int:
    """A message that died; returns its id."""
    sent = actor.send(channel, **options)
    (lease,) = actor.take(1, channel)
    assert lease.id == sent
    assert actor.fail([lease], "[PERMANENT] no") == ["dead"]
    return sent


def letter(actor: Actor, message: int) -> int:
    return actor.one("select id from menzil.dlq where original_message_id = %s", message)


def redrive(actor: Actor, dead: int) -> int | None:
    """The new id, or nothing when it was refused."""
    try:
        return actor.one("select menzil.redrive_message(%s)", dead)
    except psycopg.errors.ObjectNotInPrerequisiteState:
        return None


@pytest.mark.parametrize(("end", "second"), [("commit", "refused"), ("rollback", "done")])
def test_second_redrive_of_the_same_dead_letter_waits_and_is_refused_unless_the_first_rolls_back(
    stage: Stage, end: str, second: str
):
    dead = letter(stage.watcher, kill(stage.watcher))
    one, two = stage.hire(), stage.hire(patient=True)
    one.begin()
    assert redrive(one, dead)
    other = stage.start(redrive, two, dead)
    stage.until_waiting(two, for_whom=one)
    one.run(end)
    assert (other.result() is None) == (second == "refused")
    assert stage.live() == 1
    assert len(stage.watcher.take(1)) == 1


def test_bulk_redrive_passes_over_what_another_session_is_redriving(stage: Stage):
    first, second = kill(stage.watcher), kill(stage.watcher)
    one, two = stage.hire(), stage.hire()
    with one.open():
        redrive(one, letter(stage.watcher, first))
        assert two.one("select menzil.redrive_endpoint('a')") == 1
        assert two.one("select menzil.redrive_all()") == 0
    rows = stage.watcher.run("select redrive_of from menzil.queue order by redrive_of")
    assert [row[0] for row in rows] == [first, second]


def test_rival_bulk_redrives_bring_each_dead_letter_back_once(stage: Stage):
    sent = stage.watcher.send_batch("a", 300)
    stage.watcher.fail(stage.watcher.take(300), "[PERMANENT] no")
    actors = [stage.hire() for _ in range(4)]
    calls = ["menzil.redrive_all()", "menzil.redrive_endpoint('a')", "menzil.redrive_endpoint('a', null, 50)"]
    running = [stage.start(actor.one, f"select {calls[n % 3]}") for n, actor in enumerate(actors)]
    redriven = sum(future.result() for future in running)
    redriven += stage.watcher.one("select menzil.redrive_all()")
    assert redriven == 300
    rows = stage.watcher.run("select redrive_of from menzil.queue order by redrive_of")
    assert [row[0] for row in rows] == sent
    assert len(stage.watcher.take(300)) == 300


def test_bulk_redrive_that_commits_late_is_delivered_whole(stage: Stage):
    stage.watcher.send_batch("a", 50)
    stage.watcher.fail(stage.watcher.take(50), "[PERMANENT] no")
    operator = stage.hire()
    with operator.open():
        assert operator.one("select menzil.redrive_endpoint('a')") == 50
        for _ in range(5):  # the scan of the channel goes on beyond the places of what is still open
            stage.watcher.send("a")
            stage.watcher.complete(stage.watcher.take(1))
        assert stage.nothing_is_ready("a")
    leases = stage.watcher.take(50)
    assert [lease.id for lease in leases] == sorted(lease.id for lease in leases)


def blocked(stage: Stage, keys: int, behind: int) -> dict[str, list[int]]:
    """Keys whose first message died and holds up the others; returns the messages of each."""
    stage.watcher.channel("a", on_dead="block")
    names = [f"k{n}" for n in range(keys)]
    sent = {key: [stage.watcher.send("a", ordering_key=key) for _ in range(behind + 1)] for key in names}
    stage.watcher.fail(stage.watcher.take(keys), "[PERMANENT] no")
    assert stage.nothing_is_ready()
    return sent


def test_open_redrive_of_a_blocked_key_holds_up_nobody_and_lets_nobody_pass(stage: Stage):
    sent = blocked(stage, 1, 1)["k0"]
    operator, consumer = stage.hire(), stage.hire()
    with operator.open():
        new = redrive(operator, letter(stage.watcher, sent[0]))
        stage.watcher.send("b")
        assert [lease.channel for lease in consumer.take(1)] == ["b"]
        assert stage.nothing_is_ready("a")
    (lease,) = consumer.take(1, "a")
    assert lease.id == new
    assert stage.nothing_is_ready("a")
    consumer.complete([lease])
    assert [lease.id for lease in consumer.take(1, "a")] == sent[1:]


def test_redrive_of_a_blocked_key_that_rolls_back_leaves_it_blocked(stage: Stage):
    first, second = blocked(stage, 1, 1)["k0"]
    operator = stage.hire()
    with operator.open():
        redrive(operator, letter(stage.watcher, first))
        operator.rollback()
    assert stage.nothing_is_ready("a")
    assert stage.watcher.cancel(first) is True
    assert [lease.id for lease in stage.watcher.take(1, "a")] == [second]


@pytest.mark.parametrize("first", ["redrive", "cancel"])
def test_cancel_and_redrive_of_a_dead_letter_that_blocks_do_not_both_free_its_key(stage: Stage, first: str):
    dead, behind = blocked(stage, 1, 1)["k0"]
    one, two = stage.hire(), stage.hire(patient=True)
    number = letter(stage.watcher, dead)
    one.begin()
    if first == "redrive":
        new = redrive(one, number)
        other: Future[Any] = stage.start(two.cancel, dead)
    else:
        assert one.cancel(dead) is True
        other = stage.start(redrive, two, number)
    stage.until_waiting(two, for_whom=one)
    one.commit()
    if first == "redrive":
        assert other.result() is False
        order = [new, behind]
    else:
        order = [behind, other.result()]
    for expected in order:
        (lease,) = stage.watcher.take(1, "a")
        assert lease.id == expected
        assert stage.nothing_is_ready("a")
        stage.watcher.complete([lease])


def test_blocked_keys_redriven_beside_busy_consumers_keep_their_order(stage: Stage):
    sent = blocked(stage, 40, 3)
    operator, consumers = stage.hire(), [stage.hire() for _ in range(3)]
    served: list[Lease] = []
    done = threading.Event()

    def work(actor: Actor) -> None:
        while not done.is_set():
            leases = actor.dequeue(5, "a")
            # Noted before the settle: the next of its key cannot be leased, and noted, before that.
            served.extend(leases)
            actor.complete(leases)

    running = [stage.start(work, actor) for actor in consumers]
    for messages in list(sent.values())[:20]:
        redrive(operator, letter(operator, messages[0]))
    assert operator.one("select menzil.redrive_endpoint('a')") == 20
    poll(lambda: stage.live() == 0, "everything is served")
    done.set()
    for future in running:
        future.result()
    completed = "select id, coalesce(redrive_of, id) from menzil.archive where status = 'completed'"
    origin = dict(stage.watcher.run(completed))
    for key, messages in sent.items():
        assert [origin[lease.id] for lease in served if lease.key == key] == messages
