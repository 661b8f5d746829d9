"""The idempotency key of an expired message: free for the next send, unless an open dequeue has leased the message."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

import psycopg
import pytest

from tests.races.actor import Actor
from tests.races.pause import pause_before
from tests.races.stage import Stage, poll
from tests.races.test_idempotency import ISOLATIONS, keyed


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("way", ["send", "send_many"])
def test_key_of_an_expired_message_that_an_open_dequeue_has_leased_stays_with_it(
    stage: Stage, isolation: str, way: str
):
    first, consumer, sender = keyed(stage.watcher), stage.hire(), stage.hire(patient=True)
    consumer.begin()
    leases = consumer.take(1)
    expire_a_while_ago(stage.watcher)
    assert keyed(stage.watcher, way=way) == first
    sender.begin(isolation)
    assert keyed(sender, way=way) == first
    consumer.commit()
    assert consumer.complete(leases) == ["settled"]
    try:
        assert keyed(sender, way=way) == first
        sender.commit()
    except psycopg.errors.SerializationFailure:
        assert isolation == "repeatable read"
        sender.rollback()
    assert keyed(stage.watcher, way=way) == first
    assert stage.live() == 0


def test_send_with_an_old_snapshot_does_not_take_the_key_of_a_message_that_was_leased_and_expired_since(stage: Stage):
    sent = {key: stage.watcher.send("a", idempotency_key=key) for key in ("leased", "completed")}
    consumer, senders = stage.hire(), {key: stage.hire() for key in sent}
    stage.watcher.run("update menzil.message set expires_at = clock_timestamp() + interval '3 s'")
    for sender in senders.values():
        sender.begin("repeatable read")
        sender.run("select count(*) from menzil.queue")
    leases = consumer.take(2)
    assert consumer.complete([lease for lease in leases if lease.id == sent["completed"]]) == ["settled"]
    stage.watcher.run("select pg_sleep_until(max(expires_at) + interval '1.1 s') from menzil.message")
    for key, sender in senders.items():
        with pytest.raises(psycopg.errors.SerializationFailure):
            sender.send("a", idempotency_key=key)
        sender.rollback()
        assert stage.watcher.send("a", idempotency_key=key) == sent[key]
    assert stage.live() == 1


def test_housekeeping_leaves_the_key_of_an_expired_message_that_an_open_dequeue_has_leased(stage: Stage):
    first, consumer = keyed(stage.watcher), stage.hire()
    consumer.begin()
    leases = consumer.take(1)
    expire_a_while_ago(stage.watcher)
    assert stage.watcher.one("select menzil.cleanup_used_keys()") == 0
    consumer.commit()
    assert consumer.complete(leases) == ["settled"]
    assert keyed(stage.watcher) == first
    assert stage.live() == 0


@pytest.mark.parametrize("way", ["send", "send_many"])
def test_key_of_an_expired_message_stays_with_it_when_its_dequeue_commits_while_a_send_waits(stage: Stage, way: str):
    """The wait is short: on a busy machine it may be over before the commit, and then the key was never free."""
    consumer, sender = stage.hire(), stage.hire()
    for _ in range(10):
        first = keyed(stage.watcher, way=way)
        consumer.begin()
        leases = consumer.take(1)
        expire_a_while_ago(stage.watcher)
        second = stage.start(keyed, sender, way=way)
        poll(partial(done_or_waiting, stage, sender, second), "the send waits for the lane")
        consumer.commit()
        assert second.result() == first
        assert consumer.fail(leases, "[PERMANENT] no") == ["dead"]


def test_key_of_an_expired_message_stays_with_it_when_it_completes_while_a_send_looks(stage: Stage):
    first, consumer, sender = keyed(stage.watcher), stage.hire(), stage.hire()
    consumer.begin()
    leases = consumer.take(1)
    expire_a_while_ago(stage.watcher)
    pause = pause_before(stage, sender, "_take_key", "if not v_held and")
    second = stage.start(keyed, sender)
    pause.reached()
    consumer.commit()
    assert consumer.complete(leases) == ["settled"]
    pause.open()
    assert second.result() == first


@pytest.mark.parametrize("way", ["one batch", "one transaction"])
def test_thousands_of_keys_of_expired_messages_do_not_wait_for_an_open_dequeue_each(stage: Stage, way: str):
    keyed_messages = [{"endpoint": "a", "idempotency_key": f"k{n}"} for n in range(2000)]
    sent, consumer, sender = stage.watcher.send_many(*keyed_messages), stage.hire(), stage.hire()
    consumer.begin()
    consumer.take(1)
    expire_a_while_ago(stage.watcher)
    sender.begin()
    if way == "one batch":
        assert sender.send_many(*keyed_messages) == sent
    else:
        one = "menzil.send_with_options('a', '0', p_idempotency_key => 'k' || n)"
        assert sender.one(f"select array_agg({one} order by n) from generate_series(0, 1999) n") == sent
    sender.rollback()
    consumer.rollback()
    assert set(sender.send_many(*keyed_messages)).isdisjoint(sent)


def done_or_waiting(stage: Stage, sender: Actor, sent: Future[int]) -> bool:
    return sent.done() or stage.waits(sender)


def expire_a_while_ago(actor: Actor) -> None:
    """All messages expired two seconds ago."""
    actor.run("update menzil.message set expires_at = now() - interval '2 s'")
