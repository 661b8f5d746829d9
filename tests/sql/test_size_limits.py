"""Sizes: of a payload, of a channel, of the whole queue. What does not fit is refused before anything is written."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import until
from tests.sql.queue import Queue

FULL = psycopg.errors.ConfigurationLimitExceeded


def limit(queue: Queue, messages: int) -> None:
    queue.call("set_setting", "max_queue_size", str(messages))


def depth(queue: Queue) -> int:
    return queue.one("select count(*) from menzil.queue")


def drain(queue: Queue, count: int = 10_000) -> None:
    queue.complete(*queue.dequeue(count))


def fits(queue: Queue, count: int = 1) -> bool:
    try:
        queue.send_batch("work", count)
    except FULL:
        return False
    return True


def test_a_channel_takes_exactly_its_max_size(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=3)
    for _ in range(3):
        queue.send()
    with pytest.raises(FULL):
        queue.send()
    assert depth(queue) == 3


def test_a_batch_larger_than_the_room_of_its_channel_is_refused_whole(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=5)
    queue.send()
    with pytest.raises(FULL):
        queue.send_batch("work", 5)
    with pytest.raises(FULL):
        queue.call("send_many", ["work"] * 5, [Jsonb({})] * 5)
    assert depth(queue) == 1
    assert len(queue.send_batch("work", 4)) == 4


def test_every_kind_of_message_counts(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=6)
    queue.send(ordering_key="k")
    queue.send(scheduled_at="2099-01-01")
    queue.call("message_create", "work", b"x")
    queue.call("send_many", ["work"] * 2, [Jsonb({})] * 2)
    queue.dequeue(2)
    queue.send()
    with pytest.raises(FULL):
        queue.send()


def expire_now(queue: Queue) -> None:
    """Let the time of every waiting message be over."""
    queue.conn.execute("""
        update menzil.message set expires_at = now();
        update menzil.run set flags = flags | 2;
        update menzil.line set flags = flags | 2 where rank is not null;
        delete from menzil.expiring;
        insert into menzil.expiring (expires_at, id, created_at) select now(), id, created_at from menzil.message""")


@pytest.mark.parametrize("how", ["complete", "die", "cancel", "expire"])
def test_every_way_to_end_makes_room_in_its_channel(queue: Queue, how: str) -> None:
    queue.call("channel_set", "work", p_max_size=1)
    for _ in range(3):
        sent = queue.send(expires_at=queue.one("select now() + interval '1 hour'"))
        if how == "complete":
            queue.complete(queue.lease())
        elif how == "die":
            queue.fail(queue.lease(), "[PERMANENT]")
        elif how == "cancel":
            queue.call("message_cancel", sent)
        else:
            expire_now(queue)
            assert queue.call("mark_expired_messages") == 1


def test_a_rolled_back_send_takes_no_room_in_its_channel(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=2)
    with queue.conn.transaction(force_rollback=True):
        queue.send_batch("work", 2)
    assert len(queue.send_batch("work", 2)) == 2


def test_a_size_limit_set_later_counts_what_is_there(queue: Queue) -> None:
    queue.send(ordering_key="a")
    queue.send(ordering_key="a")
    queue.send(scheduled_at="2099-01-01")
    queue.send()
    queue.dequeue(1)
    queue.call("channel_set", "work", p_max_size=5)
    queue.send()
    with pytest.raises(FULL):
        queue.send()


def test_a_size_limit_that_is_set_while_sends_are_open_is_exact_after_the_job(queue: Queue, connect) -> None:
    """A send that is open when the limit is set does not know that it has to tell the size log; its end does."""
    other = Queue(connect(autocommit=False))
    other.send_batch("work", 4)
    queue.call("channel_set", "work", p_max_size=3)
    other.conn.commit()
    drain(queue)
    assert depth(queue) == 0
    queue.call("job_run", "sizes")
    assert queue.one("select last_count, last_error from menzil.jobs where name = 'sizes'") == (1, None)
    assert [fits(queue) for _ in range(5)] == [True, True, True, False, False]


def test_a_size_limit_is_raised_and_lifted_while_the_channel_runs(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=2)
    queue.send_batch("work", 2)
    queue.call("channel_set", "work", p_max_size=3)
    queue.send()
    with pytest.raises(FULL):
        queue.send()
    queue.call("channel_set", "work")
    queue.send_batch("work", 10)
    queue.call("channel_set", "work", p_max_size=13)
    with pytest.raises(FULL):
        queue.send()
    drain(queue, 1)
    queue.send()


def test_the_size_of_a_channel_stays_exact_over_many_sends_and_ends(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=10)
    for _ in range(40):
        queue.send_batch("work", 6)
        queue.send_batch("work", 4)
        with pytest.raises(FULL):
            queue.send()
        for message in queue.dequeue(10):
            queue.complete(message)
    assert depth(queue) == 0


def test_other_channels_have_room_when_one_is_full(queue: Queue) -> None:
    queue.call("channel_set", "full", p_max_size=1)
    queue.send("full")
    assert queue.send("work")
    with pytest.raises(FULL):
        queue.call("send_many", ["work", "full"], [Jsonb({})] * 2)
    assert depth(queue) == 2


def fill(queue: Queue, messages: int) -> None:
    """Send until the queue is full; its limit may lag by 2,000 messages, not by more."""
    for _ in range(messages + 2001):
        if not fits(queue):
            break
    assert messages <= depth(queue) <= messages + 2000


def test_the_queue_takes_what_its_limit_allows(queue: Queue) -> None:
    limit(queue, 10)
    fill(queue, 10)
    with pytest.raises(FULL) as refused:
        queue.send()
    assert "max_queue_size" in refused.value.diag.message_hint


def test_a_statement_larger_than_the_room_is_refused_whole(queue: Queue) -> None:
    limit(queue, 5000)
    assert fits(queue, 1500)
    assert not fits(queue, 6000)
    with pytest.raises(FULL):
        queue.call("send_many", ["work"] * 6000, [Jsonb({})] * 6000)
    with pytest.raises(FULL):
        queue.one(
            """select menzil.send_many(jsonb_agg(jsonb_build_object('channel', 'work', 'payload', n)))
                 from generate_series(1, 6000) n"""
        )
    assert depth(queue) == 1500
    assert fits(queue, 3500)


def test_a_huge_statement_is_refused_before_its_first_insert(queue: Queue) -> None:
    limit(queue, 10)
    with pytest.raises(FULL):
        queue.one("select menzil.send_batch('work', array_fill('1'::jsonb, array[5000]))")
    assert queue.one("select last_value from menzil.message_id") == 1


def test_growth_stops_while_nobody_dequeues(queue: Queue) -> None:
    limit(queue, 1000)
    for _ in range(40):
        fits(queue, 100)
    assert 1000 <= depth(queue) <= 3000


def test_many_open_transactions_together_overshoot_by_at_most_two_thousand(queue: Queue, connect) -> None:
    limit(queue, 3000)
    senders = [Queue(connect(autocommit=False)) for _ in range(4)]
    for sender in senders:
        sender.one("select 1")  # from here on its transaction is open, and what follows are savepoints
    for _ in range(40):
        for sender in senders:
            with contextlib.suppress(FULL), sender.conn.transaction():
                sender.send_batch("work", 100)
    for sender in senders:
        sender.conn.commit()
    assert 3000 <= depth(queue) <= 5000


def test_rolled_back_sends_do_not_eat_the_room(queue: Queue) -> None:
    limit(queue, 20)
    for _ in range(200):
        with queue.conn.transaction(force_rollback=True):
            queue.send_batch("work", 20)
    until(lambda: fits(queue, 20))
    fill(queue, 20)


def test_rolled_back_sends_do_not_eat_the_room_while_somebody_is_always_busy(queue: Queue, connect) -> None:
    limit(queue, 1000)
    busy = connect(autocommit=False)
    busy.execute("select pg_current_xact_id()")
    for _ in range(5):
        # There is never a moment without an open transaction, but none of them is open for ever.
        for _ in range(50):
            with contextlib.suppress(FULL), queue.conn.transaction(force_rollback=True):
                queue.send_batch("work", 20)
        next_one = connect(autocommit=False)
        next_one.execute("select pg_current_xact_id()")
        busy.commit()
        busy = next_one
        queue.one("select pg_current_xact_id()::text")
    until(lambda: fits(queue))


def told(queue: Queue) -> int:
    """The depth as senders take it from two registers."""
    return queue.one("select menzil._register('menzil.message_id') - menzil._register('menzil.ended_count')")


def test_settles_that_roll_back_make_no_room(queue: Queue, connect) -> None:
    """A consumer that settles in the transaction of its own work and fails must not switch the limit off."""
    limit(queue, 50)
    queue.send_batch("work", 40)
    other = Queue(connect(autocommit=False))
    for _ in range(30):
        with other.conn.transaction(force_rollback=True):
            other.complete(*other.dequeue(40))
            other.call("maintain")
            other.call("job_run", "sizes")
    assert told(queue) >= 40
    assert not fits(queue, 3000)
    assert depth(queue) == 40


def test_a_send_beside_its_own_settles_counts_them_as_live_until_they_commit(queue: Queue, connect) -> None:
    limit(queue, 3000)
    queue.send_batch("work", 3000)
    other = Queue(connect(autocommit=False))
    with other.conn.transaction(force_rollback=True):
        other.complete(*other.dequeue(3000))
        assert not fits(other, 3000)
    assert told(queue) >= 3000
    drain(queue)
    until(lambda: fits(queue, 3000))


def test_a_count_in_an_old_snapshot_takes_no_message_for_one_that_ended(queue: Queue, connect) -> None:
    limit(queue, 10)
    old = Queue(connect(autocommit=False))
    old.conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    old.one("select 1")
    queue.send_batch("work", 10)
    assert not fits(old, 3000)
    old.conn.rollback()
    assert told(queue) >= 10


def test_a_sender_that_commits_while_messages_are_counted_is_counted(queue: Queue, connect) -> None:
    """What is open is asked before the snapshot of the count: a sender that ends in between is in doubt, not gone."""
    limit(queue, 10_000)
    sender = Queue(connect(autocommit=False))
    sender.send_batch("work", 5000)
    assert queue.one("select (menzil._open_senders()).n") == 1
    queue.one("select menzil._tally(true)")
    sender.conn.commit()
    assert queue.one("select (menzil._open_senders()).n") == 0
    assert told(queue) >= depth(queue) == 5000


def test_the_ends_of_a_transaction_that_was_open_at_a_tally_are_counted_by_the_next(queue: Queue, connect) -> None:
    limit(queue, 100)
    queue.send_batch("work", 60)
    late = Queue(connect(autocommit=False))
    late.complete(*queue.dequeue(30))
    drain(queue)
    queue.one("select menzil._tally(false)")
    assert told(queue) == 30
    late.conn.commit()
    queue.one("select menzil._tally(false)")
    assert told(queue) == 0


def test_a_tally_inside_a_savepoint_is_believed(queue: Queue, connect) -> None:
    queue.send_batch("work", 5)
    drain(queue)
    other = Queue(connect(autocommit=False))
    with other.conn.transaction(), other.conn.transaction():
        other.one("select menzil._tally(false)")
    assert queue.one("select xmin = any (writer) from menzil.tally order by id desc limit 1")
    queue.one("select menzil._tally(false)")
    assert told(queue) == 0


def test_room_comes_back_after_a_drain(queue: Queue) -> None:
    limit(queue, 30)
    for _ in range(4):
        until(lambda: fits(queue, 30))
        fill(queue, 30)
        drain(queue)
        assert depth(queue) == 0


@pytest.mark.parametrize("how", ["purge", "cancel", "die", "expire"])
def test_every_way_to_end_makes_room_in_the_queue(queue: Queue, how: str) -> None:
    limit(queue, 4)
    fill(queue, 4)
    if how == "purge":
        queue.call("channel_purge", "work")
    elif how == "cancel":
        for message in queue.waiting():
            queue.call("message_cancel", message)
    elif how == "die":
        for message in queue.dequeue(10_000):
            queue.fail(message, "[PERMANENT]")
    else:
        expire_now(queue)
        queue.call("mark_expired_messages", 10_000)
    assert depth(queue) == 0
    until(lambda: fits(queue, 4))


def test_a_deferred_message_is_counted_once(queue: Queue) -> None:
    limit(queue, 30)
    queue.send_batch("work", 10)
    for _ in range(50):
        queue.defer(queue.lease())
    until(lambda: fits(queue, 20))
    fill(queue, 30)


def test_messages_with_repeated_keys_are_counted_once(queue: Queue) -> None:
    limit(queue, 30)
    for _ in range(60):
        queue.send(idempotency_key="k")
    until(lambda: fits(queue, 29))
    fill(queue, 30)


def test_zero_switches_the_limit_off(queue: Queue) -> None:
    limit(queue, 1)
    fill(queue, 1)
    limit(queue, 0)
    assert fits(queue, 5000)


def test_a_limit_lowered_below_the_depth_refuses_until_the_queue_is_short_enough(queue: Queue) -> None:
    queue.send_batch("work", 2500)
    limit(queue, 10)
    assert not fits(queue)
    drain(queue)
    until(lambda: fits(queue, 10))


def test_a_payload_may_be_as_large_as_the_setting_says(queue: Queue) -> None:
    queue.call("set_setting", "max_payload_size", "1024")
    exact = "x" * 1022
    assert queue.send(payload=exact)
    assert queue.call("message_create", "work", b"x" * 1024)
    for query, value in (
        ("select menzil.send('work', %s)", Jsonb("x" * 1023)),
        ("select menzil.send_batch('work', array['1'::jsonb, %s])", Jsonb("x" * 1023)),
        ("select menzil.send_many(array['work'], array[%s]::jsonb[])", Jsonb("x" * 1023)),
        ("select menzil.message_create('work', %s)", b"x" * 1025),
        ("select menzil.send_with_options('work', '1', p_metadata := %s)", Jsonb({"a": "x" * 1023})),
    ):
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            queue.one(query, value)
    assert depth(queue) == 2


def test_a_refusal_names_what_is_too_large(queue: Queue) -> None:
    queue.call("set_setting", "max_payload_size", "1024")
    large = Jsonb({"a": "x" * 1023})
    queue.send()
    message = queue.lease()
    for what, call in (
        ("payload has 1032", lambda: queue.send(payload={"a": "x" * 1023})),
        ("headers have 1032", lambda: queue.send(headers=large)),
        ("metadata has 1032", lambda: queue.send(metadata=large)),
        ("metadata has 1032", lambda: queue.call("send_many", ["work"], [Jsonb({})], p_metadatas=[large])),
        ("state has 1025", lambda: queue.defer(message, state=b"x" * 1025)),
    ):
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match=f"The {what} bytes, the limit is 1024"):
            call()


def test_a_megabyte_is_the_default(queue: Queue) -> None:
    assert queue.send(payload="x" * (1_048_576 - 2))
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        queue.send(payload="x" * (1_048_576 - 1))


def test_size_is_measured_in_bytes_not_characters(queue: Queue) -> None:
    queue.call("set_setting", "max_payload_size", "1024")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        queue.send(payload="ü" * 512)


def test_two_counts_at_once_do_not_take_an_open_sender_for_gone(queue: Queue, connect) -> None:
    """The mark of the last count is two registers: a count that another one overtakes goes on with the ids it read."""
    limit(queue, 10_000)
    queue.send_batch("work", 10)
    queue.one("select menzil._tally(true)")  # the first mark
    sender = Queue(connect(autocommit=False))
    sender.send_batch("work", 200)
    holder, slow = connect(autocommit=False), connect()
    holder.execute("lock menzil.withdrawn in access exclusive mode")  # the slow count waits here, in the middle
    waits = "select exists (select from pg_locks where relation = 'menzil.withdrawn'::regclass and not granted)"
    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(lambda: slow.execute("select menzil._tally(true)").fetchone())
        try:
            until(lambda: queue.one(waits))
            # What another count would write meanwhile: the sender is open, and the mark moves on.
            queue.one("select setval('menzil.counted_xid', pg_snapshot_xmax(pg_current_snapshot())::text::bigint)")
            queue.one("select setval('menzil.counted_ids', menzil._register('menzil.message_id'))")
        finally:
            holder.rollback()
        counting.result()
    sender.conn.commit()
    assert told(queue) >= depth(queue) == 210
