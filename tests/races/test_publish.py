"""Publishing beside open transactions that change who is subscribed: nobody waits, nobody deadlocks."""

from __future__ import annotations

import pytest

from tests.races.actor import Actor
from tests.races.stage import Stage

BATCH = """select menzil.publish_batch(array['{"event_type": "placed", "payload": {}}',
                                             '{"event_type": "paid", "payload": {}}']::jsonb[])"""


@pytest.fixture
def events(stage: Stage) -> Stage:
    """Channels a and b, event types placed and paid; a is subscribed to both."""
    for event_type in ("placed", "paid"):
        stage.watcher.run(f"select menzil.create_event_type('{event_type}')")
        stage.watcher.run(f"select menzil.subscribe('{event_type}', 'a')")
    return stage


def publish(actor: Actor, event_type: str = "placed") -> int:
    return actor.one("select menzil.publish(%s, '{}')", event_type)


CHANGES = [
    "subscribe('placed', 'b')",
    "subscribe('placed', 'a', '{\"x\": 1}')",
    "unsubscribe('placed', 'a')",
    "create_event_type('placed', 'changed', '{\"type\": \"array\"}')",
    "drop_event_type('placed')",
    "channel_release('a')",
    "channel_pause('a')",
    "channel_set('a', p_max_concurrency => 1)",
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_publish_does_not_wait_for_an_open_change_and_does_not_see_it(events: Stage, change: str):
    operator, sender = events.hire(), events.hire()
    with operator.open():
        operator.run(f"select menzil.{change}")
        assert publish(sender) == 1
        assert sender.one(BATCH) == 2
        operator.rollback()
    assert publish(sender) == 1


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_does_not_wait_for_an_open_publish(events: Stage, change: str):
    sender, operator = events.hire(), events.hire()
    with sender.open():
        assert publish(sender) == 1
        assert sender.one(BATCH) == 2
        operator.run(f"select menzil.{change}")
    assert events.live() == 3


def test_crossing_publishes_of_two_types_do_not_wait_for_each_other(events: Stage):
    one, two = events.hire(), events.hire()
    with one.open(), two.open():
        publish(one, "placed")
        publish(two, "paid")
        publish(one, "paid")
        publish(two, "placed")
        one.one(BATCH)
        two.one(BATCH)
    assert events.live() == 8


def test_batches_with_the_same_keys_in_another_order_wait_and_do_not_deadlock(events: Stage):
    for event_type in ("placed", "paid"):
        events.watcher.run(f"select menzil.subscribe('{event_type}', 'b')")
    first, second = events.hire(), events.hire(patient=True)
    batch = "select menzil.publish_batch(array[{}]::jsonb[])"
    keyed = [
        '\'{{"event_type": "{}", "payload": 1, "idempotency_key": "{}"}}\''.format(*pair)
        for pair in (("placed", "k"), ("paid", "l"))
    ]
    with first.open():
        assert first.one(batch.format(", ".join(keyed))) == 4
        waiting = events.start(second.one, batch.format(", ".join(reversed(keyed))))
        events.until_waiting(second, first)
    assert waiting.result(timeout=60) == 4
    assert events.live() == 4


def test_a_subscription_made_twice_at_once_is_one(events: Stage):
    one, two = events.hire(), events.hire(patient=True)
    subscribe = "select menzil.subscribe('placed', 'b')"
    with one.open():
        made = one.one(subscribe)
        waiting = events.start(two.one, subscribe)
        events.until_waiting(two, one)
    assert waiting.result(timeout=60) == made


def test_an_event_type_that_is_being_dropped_takes_no_new_subscription(events: Stage):
    operator, other = events.hire(), events.hire(patient=True)
    with operator.open():
        operator.run("select menzil.drop_event_type('placed')")
        waiting = events.start(other.one, "select menzil.subscribe('placed', 'b')")
        events.until_waiting(other, operator)
    with pytest.raises(Exception, match="no event type named"):
        waiting.result(timeout=60)
    assert events.watcher.one("select count(*) from menzil.subscription where event_type = 'placed'") == 0


def test_a_dequeue_that_drops_a_drained_channel_does_not_wait_for_an_open_unsubscribe(events: Stage):
    operator, consumer = events.hire(), events.hire()
    publish(events.watcher)
    events.watcher.run("select menzil.channel_release('a')")
    with operator.open():
        operator.run("select menzil.unsubscribe(id) from menzil.subscription")
        consumer.complete(consumer.take(1))
        consumer.run("select menzil.maintain()")
        assert consumer.one("select count(*) from menzil.channels where name = 'a'") == 0
