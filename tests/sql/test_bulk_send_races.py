"""Bulk sends that meet: the same send twice, an abort, the same keys, somebody else's ids."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.sql.background import waiting
from tests.sql.clock import until
from tests.sql.queue import Queue
from tests.sql.staging import Bulk, bulk, row, stagings


def other(connect) -> Queue:
    return Queue(connect())


def test_two_commits_of_one_send_at_once_send_it_once(queue: Queue, connect) -> None:
    send = Bulk(queue)
    send.stage("t", [row()] * 3)
    first, second = connect(autocommit=False), other(connect)
    commit = "select * from menzil.bulk_commit('s', array['t'], array[3])"
    assert first.execute(commit).fetchone() == (3, 3)
    with waiting(second.conn, lambda: second.one(commit), queue.conn) as answer:
        assert not answer.done()
        first.commit()
    assert answer.result() == (3, 3)
    assert queue.one("select count(*) from menzil.message") == 3


def test_a_commit_that_fails_lets_the_second_one_send(queue: Queue, connect) -> None:
    send = Bulk(queue)
    send.stage("t", [row()] * 3)
    first, second = connect(autocommit=False), other(connect)
    commit = "select * from menzil.bulk_commit('s', array['t'], array[3])"
    first.execute(commit)
    with waiting(second.conn, lambda: second.one(commit), queue.conn) as answer:
        first.rollback()
    assert answer.result() == (3, 3)
    assert queue.one("select count(*) from menzil.message") == 3


def test_an_abort_that_comes_during_the_commit_changes_nothing(queue: Queue, connect) -> None:
    send = Bulk(queue)
    send.stage("t", [row()])
    committing, aborting = connect(autocommit=False), other(connect)
    committing.execute("select * from menzil.bulk_commit('s', array['t'], array[1])")
    with waiting(aborting.conn, lambda: aborting.call("bulk_abort", "s"), queue.conn) as answer:
        assert not answer.done()
        committing.commit()
    assert answer.result() is False
    assert queue.one("select state from menzil.bulk_sends") == "done"
    assert queue.one("select count(*) from menzil.message") == 1


def test_a_commit_that_comes_during_the_abort_sends_nothing(queue: Queue, connect) -> None:
    send = Bulk(queue)
    send.stage("t", [row()])
    aborting, committing = connect(autocommit=False), other(connect)
    aborting.execute("select menzil.bulk_abort('s')")
    commit = "select * from menzil.bulk_commit('s', array['t'], array[1])"
    with waiting(committing.conn, lambda: committing.one(commit), queue.conn) as answer:
        assert not answer.done()
        aborting.commit()
    with pytest.raises(psycopg.errors.UndefinedObject):
        answer.result()
    assert queue.one("select count(*) from menzil.message") == 0


def test_two_drivers_that_open_at_once_share_one_table(queue: Queue, connect) -> None:
    first, second = connect(autocommit=False), other(connect)
    opened = first.execute("select * from menzil.bulk_open('s')").fetchone()
    with waiting(second.conn, lambda: Bulk(second), queue.conn) as answer:
        assert not answer.done()
        first.commit()
    assert tuple(answer.result().opened) == opened
    assert len(stagings(queue)) == 1


def test_a_commit_does_not_wait_for_a_lost_task_that_still_writes(queue: Queue, connect) -> None:
    send = Bulk(queue)
    send.stage("t", [row()])
    lost = connect(autocommit=False)
    lost.execute(f"insert into menzil.{send.opened.staging} (token, n) values ('lost', 0)")
    assert send.commit("t") == (1, 1)
    assert stagings(queue) == [send.opened.staging]  # left to the reaper, who does not wait either
    assert queue.call("reap_bulk_sends") == 0
    lost.commit()
    assert queue.call("reap_bulk_sends") == 1
    assert stagings(queue) == []


def test_two_sends_with_the_same_keys_create_each_message_once(queue: Queue, connect) -> None:
    sends = [Bulk(queue, "a"), Bulk(queue, "b")]
    rows = [row(payload=n, idempotency_key=f"k{n}") for n in range(20)]
    sends[0].stage("t", rows)
    sends[1].stage("t", rows[::-1])
    first, second = connect(autocommit=False), other(connect)
    assert first.execute("select * from menzil.bulk_commit('a', array['t'], array[20])").fetchone() == (20, 20)
    commit = "select * from menzil.bulk_commit('b', array['t'], array[20])"
    with waiting(second.conn, lambda: second.one(commit), queue.conn) as answer:
        assert not answer.done()
        first.commit()
    assert answer.result() == (20, 0)
    assert queue.one("select count(*) from menzil.message") == 20
    assert len(queue.dequeue(50)) == 20


def test_a_key_that_was_sent_with_another_payload_meanwhile_refuses_the_send(queue: Queue, connect) -> None:
    send = Bulk(queue)
    send.stage("t", [row(payload=1), row(payload=2, idempotency_key="k")])
    single, second = connect(autocommit=False), other(connect)
    single.execute("select menzil.send_with_options('work', '3', p_idempotency_key := 'k')")
    commit = "select * from menzil.bulk_commit('s', array['t'], array[2])"
    with waiting(second.conn, lambda: second.one(commit), queue.conn) as answer:
        assert not answer.done()
        single.commit()
    with pytest.raises(psycopg.errors.UniqueViolation):
        answer.result()
    assert queue.all("select payload from menzil.message") == [(3,)]


def test_ids_follow_the_rows_also_when_others_take_ids_in_between(queue: Queue, connect) -> None:
    stop, busy = threading.Event(), connect()

    def take() -> None:
        while not stop.is_set():
            busy.execute("select nextval('menzil.message_id')")

    taking = threading.Thread(target=take)
    taking.start()
    sends = iter(range(1000))

    def mixed() -> int | None:
        send = Bulk(queue, f"s{next(sends)}")
        queue.conn.execute(
            f"insert into menzil.{send.opened.staging} (token, n, endpoint, payload) "
            "select 't' || g % 2, g / 2, 'work', g::text from generate_series(0, 19999) g"
        )
        send.commit("t1", "t0", counts=[10000, 10000])
        first, last = queue.one("select first_id, last_id from menzil.bulk_sends where send_id = %s", send.send_id)
        return first if last - first > 19999 else None

    try:
        first = until(mixed, 60)
    finally:
        stop.set()
        taking.join()
    sent = [payload for (payload,) in queue.all("select payload from menzil.message where id >= %s order by id", first)]
    assert sent == [*range(1, 20000, 2), *range(0, 20000, 2)]


def test_a_consumer_that_is_past_these_places_finds_the_messages_of_a_slow_commit(queue: Queue, connect) -> None:
    send = Bulk(queue)
    send.stage("t", [row(payload=n) for n in range(5)])
    slow = connect(autocommit=False)
    slow.execute("select * from menzil.bulk_commit('s', array['t'], array[5])")
    later = [queue.send(), queue.send()]
    assert [message.id for message in queue.dequeue(10)] == later
    slow.commit()
    assert [message.payload for message in queue.dequeue(10)] == list(range(5))


def test_a_bulk_send_in_a_transaction_that_cannot_see_others_is_refused(queue: Queue, connect) -> None:
    Bulk(queue)
    conn = connect(autocommit=False)
    conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="READ COMMITTED"):
        conn.execute("select * from menzil.bulk_commit('s', '{}', '{}')")


def test_a_bulk_send_goes_beside_open_business_transactions(queue: Queue, connect) -> None:
    business = connect(autocommit=False)
    business.execute("select menzil.send('work', '1')")
    assert bulk(queue, row(payload=2)) == (1, 1)
    business.commit()
    assert {message.payload for message in queue.dequeue(5)} == {1, 2}


@pytest.fixture
def misleading_statistics(queue: Queue) -> Iterator[None]:
    """What the planner believes of a month when it was analyzed at a bad moment: that all its messages have one id."""
    partitions = "select t.relid::regclass::text from pg_partition_tree('menzil.message') t where t.isleaf"
    for (partition,) in queue.all(partitions):
        queue.conn.execute(f"alter table {partition} alter column id set (n_distinct = 1)")
    yield
    for (partition,) in queue.all(partitions):
        queue.conn.execute(f"alter table {partition} alter column id reset (n_distinct)")
    queue.conn.execute("analyze menzil.message")


@pytest.mark.usefixtures("misleading_statistics")
def test_work_for_a_key_does_not_grow_with_the_keys_that_an_open_dequeue_may_hold(queue: Queue, connect) -> None:
    consumer = connect(autocommit=False)

    def pages(count: int) -> float:
        """How many pages the second send of so many keys looks at, for each key."""
        for number in range(2):
            send = Bulk(queue, f"{count}, {number}")
            queue.conn.execute(
                f"insert into menzil.{send.opened.staging} (token, n, endpoint, payload, idempotency_key) "
                f"select 't', g, 'work', '1', '{count}-' || g from generate_series(0, {count - 1}) g"
            )
            if number == 0:
                assert send.commit("t") == (count, count)
        queue.conn.execute("update menzil.message set expires_at = now() - interval '2 s'")
        queue.conn.execute("analyze menzil.message")
        consumer.execute("select menzil.message_dequeue(60000, 1, array['work'])")
        [report] = queue.one(
            "explain (analyze, buffers, format json) select * from menzil.bulk_commit(%s, array['t'], %s)",
            *(send.send_id, [count]),
        )
        consumer.rollback()
        assert queue.one("select created_count from menzil.bulk_sends where send_id = %s", send.send_id) == 0
        return float(report["Plan"]["Shared Hit Blocks"]) / count

    few = pages(500)
    assert pages(8000) < 2 * few
