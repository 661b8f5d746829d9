"""Messages whose transaction commits after others with higher ids were leased, and their channel went idle."""

from __future__ import annotations

import pytest

from tests.races.actor import Actor, Lease
from tests.races.stage import Stage, poll


def drain(stage: Stage, actor: Actor, *channels: str) -> list[Lease]:
    """Takes and completes everything until no lane has anything that waits, as far as others can see."""
    taken: list[Lease] = []

    def quiet() -> bool:
        leases = actor.dequeue(10, *channels)
        actor.complete(leases)
        taken.extend(leases)
        return not leases and stage.watcher.one("select count(*) from menzil.lane where tail_due is not null") == 0

    poll(quiet, "the channels are idle")
    return taken


@pytest.mark.parametrize("options", [{}, {"priority": 4}, {"ordering_key": "k"}], ids=["plain", "urgent", "keyed"])
def test_late_commit_with_a_lower_id_is_delivered_after_its_channel_went_idle(stage: Stage, options: dict[str, object]):
    late, consumer = stage.hire(), stage.hire()
    with late.open():
        low = late.send("a", **options)
        high = stage.watcher.send("a", **options)
        assert [lease.id for lease in drain(stage, consumer)] == [high]
    assert low < high
    assert [lease.id for lease in consumer.take(1)] == [low]


def test_late_commits_between_two_visits_are_delivered_before_what_came_after_them(stage: Stage):
    late, consumer = stage.hire(), stage.hire()
    first = stage.watcher.send("a")
    late.begin()
    middle = [late.send("a"), late.send("a")]
    last = [stage.watcher.send("a") for _ in range(3)]
    stage.sweep()
    taken = consumer.take(1)
    late.commit()
    taken += consumer.take(5)
    assert [lease.id for lease in taken] == [first, *middle, *last]


@pytest.mark.parametrize("calls", [[1, 1], [1, 1, 1], [2, 2]], ids=str)
def test_late_commit_beside_a_transaction_that_visits_its_channel_twice_is_delivered(stage: Stage, calls: list[int]):
    """Others see the lane as it was before both visits, while the visitor is past the place of the late message."""
    late, visitor, other = stage.hire(), stage.hire(), stage.hire()
    stage.watcher.send("a")
    late.begin()
    low = late.send("a")
    stage.watcher.send_batch("a", 6)
    stage.sweep()
    with visitor.open():
        for call in calls:
            visitor.dequeue(call)
        late.commit()
        other.dequeue()
        other.dequeue()
    taken = drain(stage, other)
    assert low in [lease.id for lease in taken]


def test_late_commit_beside_a_transaction_that_finds_its_channel_empty_twice_is_delivered(stage: Stage):
    late, visitor, other = stage.hire(), stage.hire(), stage.hire()
    stage.watcher.send("a")
    late.begin()
    low = late.send("a")
    stage.watcher.send("a")
    stage.sweep()
    with visitor.open():
        visitor.take(2)
        for _ in range(3):
            assert visitor.dequeue() == []
        late.commit()
        other.dequeue()
        other.dequeue()
    assert [lease.id for lease in other.take(1)] == [low]


def test_batch_that_commits_late_is_delivered_whole(stage: Stage):
    late, consumer = stage.hire(), stage.hire()
    with late.open():
        low = late.send_batch("a", 40)
        high = stage.watcher.send_batch("a", 40)
        half = consumer.take(20)
    rest = consumer.take(60)
    assert [lease.id for lease in half] == high[:20]
    assert [lease.id for lease in rest] == low + high[20:]


def test_hundreds_of_late_commits_below_the_head_are_delivered_in_their_order(stage: Stage):
    late = [stage.hire() for _ in range(5)]
    consumer = stage.hire()
    low: list[int] = []
    for actor in late:
        actor.begin()
        low += [actor.send("a") for _ in range(60)]
    stage.watcher.send_batch("a", 50)
    drain(stage, consumer)
    for actor in late:
        actor.commit()
    assert [lease.id for lease in consumer.take(300)] == low
    assert stage.nothing_is_ready()


def test_own_message_sent_and_sought_in_one_transaction_survives_others_that_drain_the_channel(stage: Stage):
    """The sender's own dequeue folds its line; until the commit others see neither the message nor the line."""
    business, consumer = stage.hire(), stage.hire()
    seen = stage.watcher.send("a")
    stage.sweep()
    with business.open():
        own = business.send("a")
        business.run("select menzil._fold(clock_timestamp(), true)")
        poll(lambda: not consumer.dequeue(1), "nothing more is to be had")
    got = {row[0] for row in stage.watcher.run("select id from menzil.queue where status = 'processing'")}
    left = {seen, own} - got
    assert {lease.id for lease in consumer.take(len(left))} == left
    assert stage.nothing_is_ready()


@pytest.mark.parametrize("options", [{}, {"ordering_key": "k"}, {"priority": 3}], ids=["plain", "keyed", "urgent"])
def test_message_sent_and_leased_in_one_transaction_is_delivered_when_it_rolls_back_to_the_lease(
    stage: Stage, options: dict[str, object]
):
    business, consumer = stage.hire(), stage.hire()
    with business.open():
        own = business.send("a", **options)
        business.run("savepoint s")
        assert [lease.id for lease in business.take(1)] == [own]
        business.run("rollback to s")
        assert drain(stage, consumer) == []
    assert [lease.id for lease in consumer.take(1)] == [own]


def test_transaction_that_sends_and_dequeues_another_channel_hides_nothing(stage: Stage):
    business, consumer = stage.hire(), stage.hire()
    other = stage.watcher.send("b")
    with business.open():
        own = business.send("a")
        [lease] = business.take(1, "b")
        assert lease.id == other
        business.complete([lease])
    assert [lease.id for lease in consumer.take(1)] == [own]
    assert stage.nothing_is_ready()


def test_send_and_dequeue_again_and_again_beside_consumers_that_drain_to_idle_loses_nothing(stage: Stage):
    business, consumer = stage.hire(), stage.hire()
    sent: set[int] = set()
    taken: list[int] = []
    for round_number in range(30):
        with business.open():
            sent.add(business.send("a", ordering_key="k" if round_number % 3 == 0 else None))
            sent.add(stage.watcher.send("a", priority=round_number % 2))
            mine = business.dequeue(1 + round_number % 2)
            business.complete(mine)
            taken += [lease.id for lease in mine]
            theirs = consumer.dequeue(1 + round_number % 4)
            consumer.complete(theirs)
            taken += [lease.id for lease in theirs]
        if round_number % 5 == 4:
            taken += [lease.id for lease in drain(stage, consumer)]
    taken += [lease.id for lease in consumer.take(len(sent) - len(taken))]
    assert sorted(taken) == sorted(sent)
