"""Dequeueing: what a lease shows, how much it takes, and from which channels."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from tests.sql.queue import Queue, channels, ids

COLUMNS = (
    "id",
    "channel",
    "content",
    "payload",
    "state",
    "num_attempts",
    "headers",
    "correlation_id",
    "metadata",
    "ordering_key",
    "priority",
    "retry_count",
    "created_at",
    "scheduled_at",
    "expires_at",
    "unlock_at",
    "batch",
)


def test_a_lease_shows_all_that_a_worker_needs(queue: Queue) -> None:
    queue.send()
    assert queue.lease()._fields == COLUMNS


def test_nothing_to_do_is_no_row(queue: Queue) -> None:
    assert queue.dequeue(100) == []


def test_one_message_is_leased_unless_more_are_asked_for(queue: Queue) -> None:
    sent = queue.send_batch("work", 5)
    assert ids(queue.all("select * from menzil.message_dequeue(1000)")) == sent[:1]
    assert ids(queue.dequeue(3)) == sent[1:4]
    assert ids(queue.dequeue(100)) == sent[4:]
    assert queue.dequeue(100) == []


def test_a_leased_message_is_not_leased_again(queue: Queue, connect) -> None:
    queue.send_batch("work", 10)
    other = Queue(connect())
    mine, theirs = ids(queue.dequeue(5)), ids(other.dequeue(10))
    assert len(mine) == len(theirs) == 5
    assert set(mine).isdisjoint(theirs)


def test_the_lease_lasts_as_long_as_asked(queue: Queue) -> None:
    queue.send()
    before = queue.now()
    message = queue.lease(lock_ms=90_000)
    assert before + timedelta(seconds=90) <= message.unlock_at <= queue.now() + timedelta(seconds=90)


def test_only_the_named_channels_are_served(queue: Queue) -> None:
    for name in ("a", "b", "c"):
        queue.call("channel_set", name)
        queue.send(name)
    assert channels(queue.dequeue(10, ["b"])) == ["b"]
    assert sorted(channels(queue.dequeue(10, ["c", "a", "c", "work"]))) == ["a", "c"]
    assert queue.dequeue(10) == []


def test_a_worker_that_names_no_channel_at_all_gets_nothing(queue: Queue) -> None:
    queue.send()
    assert queue.dequeue(10, []) == []
    assert len(queue.dequeue(10)) == 1


def test_named_channels_keep_priority_and_turns(queue: Queue) -> None:
    for name in ("a", "b", "c"):
        queue.call("channel_set", name)
        queue.send_batch(name, 3)
    urgent = queue.send("b", priority=3)
    taken = queue.dequeue(5, ["a", "b"])
    assert taken[0].id == urgent
    assert sorted(channels(taken[1:])) == ["a", "a", "b", "b"]


def test_an_endpoint_is_dequeued_like_a_channel(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    sent = queue.call("send", "hook", {})
    row = queue.one("select id, channel, endpoint, endpoint_id from menzil.queue")
    assert row[:3] == (sent, "hook", "hook")
    assert row.endpoint_id == queue.one("select id from menzil.endpoints")
    assert queue.lease(["hook"]).channel == "hook"


def test_the_worker_leaves_its_name(queue: Queue) -> None:
    sent = queue.send()
    (message,) = queue.dequeue(worker="worker-7")
    assert queue.one("select worker from menzil.queue") == "worker-7"
    queue.complete(message)
    assert queue.archived(sent).worker == "worker-7"


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_snapshot_that_cannot_see_new_messages_is_refused(queue: Queue, level: str) -> None:
    queue.send()
    queue.conn.execute(f"set default_transaction_isolation = '{level}'")
    with pytest.raises(psycopg.errors.ActiveSqlTransaction):
        queue.dequeue()


def test_a_dequeue_that_is_rolled_back_leased_nothing(queue: Queue) -> None:
    sent = queue.send_batch("work", 3)
    with queue.conn.transaction(force_rollback=True):
        assert len(queue.dequeue(2)) == 2
    taken = queue.dequeue(3)
    assert ids(taken) == sent
    assert [message.num_attempts for message in taken] == [1, 1, 1]


def test_a_consumer_with_an_open_transaction_does_not_stop_another_channel(queue: Queue, connect) -> None:
    queue.call("channel_set", "other")
    queue.send()
    queue.call("maintain")  # a dequeue may empty old logs, and whoever does must not stay open: here there are none
    slow = Queue(connect(autocommit=False))
    assert len(slow.dequeue()) == 1
    sent = queue.send("other")
    assert queue.lease().id == sent


def test_no_call_leaves_anything_behind_in_its_session(queue: Queue) -> None:
    def state() -> tuple[object, ...]:
        settings = queue.all("select name, setting from pg_settings order by name")
        locks = queue.one("select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'")
        return settings, locks, queue.one("select pg_my_temp_schema()"), queue.all("select pg_listening_channels()")

    before = state()
    queue.call("channel_set", "narrow", 1, 10, 10, 10)
    for channel in ("work", "narrow"):
        queue.send(channel, ordering_key="k", idempotency_key="i")
        queue.send(channel, scheduled_at="2099-01-01")
        queue.send_batch(channel, 3)
        queue.defer(queue.lease([channel]))
    for message in queue.dequeue(10):
        queue.fail(message)
    queue.call("channel_purge", "work")
    queue.call("enable_fast_mode")
    queue.call("maintain")
    assert state() == before


def test_a_lease_is_committed_to_the_disk_whatever_the_session_says(queue: Queue) -> None:
    # After a crash nobody else may get the same attempt number: it is the token.
    queue.send()
    with queue.conn.transaction():
        queue.call("enable_fast_mode")
        assert len(queue.dequeue()) == 1
        assert queue.one("show synchronous_commit") == "on"
    queue.conn.execute("set synchronous_commit = off")
    queue.send()
    with queue.conn.transaction():
        assert len(queue.dequeue()) == 1
        assert queue.one("show synchronous_commit") == "on"
    assert queue.one("show synchronous_commit") == "off"


@pytest.mark.parametrize("how", ["any channel", "one channel", "next"])
def test_a_clock_that_was_set_back_keeps_no_message_waiting(queue: Queue, how: str) -> None:
    """All that a busy lane and the registers noted lies an hour ahead then."""
    queue.send_batch("work", 20)
    queue.dequeue(5)
    queue.conn.execute("update menzil.lane set next_at = next_at + interval '1 hour', v = v + 1")
    queue.conn.execute("""
        select setval(r.name, coalesce(pg_sequence_last_value(r.name), 0) + 3600000000)
          from unnest('{menzil.swept_at, menzil.deep_at, menzil.turn_mark}'::regclass[]) r(name)""")
    for _ in range(3):
        if how == "next":
            assert len(queue.rows("message_next", [], [], 60_000, 5)) == 5
        else:
            assert len(queue.dequeue(5, ["work"] if how == "one channel" else None)) == 5


def test_attempts_only_grow(queue: Queue) -> None:
    queue.send()
    for attempt in range(1, 6):
        message = queue.lease()
        assert message.num_attempts == attempt
        queue.defer(message)


def test_many_channels_with_one_message_each_are_drained_in_one_call(queue: Queue) -> None:
    names = [f"c{n}" for n in range(200)]
    for name in names:
        queue.call("channel_set", name)
    sent = queue.call("send_many", names, [psycopg.types.json.Jsonb({})] * 200)
    assert sorted(ids(queue.dequeue(1000))) == sent


def test_a_dequeue_that_is_not_full_visits_no_channel_over_and_over(queue: Queue) -> None:
    names = [f"c{n}" for n in range(600)]
    for name in names:
        queue.call("channel_set", name)
    queue.call("send_many", names, [psycopg.types.json.Jsonb({})] * 600)
    queue.call("maintain")
    counted = "select n_tup_upd from pg_stat_xact_user_tables where relid = 'menzil.lane'::regclass"
    with queue.conn.transaction():
        before = queue.one(counted)  # what earlier transactions of this session did and have not reported yet
        assert len(queue.dequeue(1000)) == 600
        assert queue.one(counted) - before == 600  # each lane once; going round made two hundred each


def test_a_lease_lasts_as_long_as_was_asked(queue: Queue) -> None:
    """To the microsecond, whichever way the dequeue takes."""
    queue.send_batch("work", 50)
    for limit in (1, 5, 1, 5):
        queue.dequeue(limit, lock_ms=60_000)
        queue.send("work")
    assert queue.all("select distinct unlock_at - leased_at from menzil.lease") == [(timedelta(seconds=60),)]
