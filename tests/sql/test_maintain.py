"""The janitors: what a dequeue does on the way, for queues that nobody dequeues from."""

from __future__ import annotations

import psycopg
import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, ids


def test_maintain_does_every_chore_once(queue: Queue) -> None:
    queue.call("channel_set", "leaving")
    last = queue.send("leaving")
    lost = queue.send(priority=10)
    message = queue.lease(["leaving"])
    queue.call("channel_release", "leaving")
    assert queue.lease(["work"]).id == lost
    expiring = queue.send(expires_at=queue.one("select now() + interval '30 seconds'"))
    scheduled = queue.send(scheduled_at=queue.one("select now() + interval '30 seconds'"))
    queue.complete(message)
    queue.send(idempotency_key="k", priority=10)
    queue.complete(queue.lease(["work"]))
    pass_time(queue.conn, 90_000)
    queue.call("maintain")
    assert queue.status(last).status == "completed"
    assert queue.status(lost).retry_count == 1
    assert queue.status(expiring).status == "expired"
    assert sorted(ids(queue.rows("message_peek", "work"))) == sorted([lost, scheduled])
    assert queue.one("select count(*) from menzil.key") == 0
    assert queue.all("select name from menzil.channels") == [("work",)]


def test_maintaining_an_empty_queue_changes_nothing(queue: Queue) -> None:
    for _ in range(3):
        queue.call("maintain")
    assert queue.all("select * from menzil.event_log where event_type <> 'channel.created'") == []
    sent = queue.send()
    assert queue.lease().id == sent


def test_maintaining_again_and_again_loses_nothing(queue: Queue) -> None:
    queue.call("channel_set", "narrow", 2)
    sent = queue.send_batch("work", 20) + queue.send_batch("narrow", 10)
    sent += [queue.send("narrow", ordering_key="k") for _ in range(5)]
    sent += [queue.send(scheduled_at=queue.one("select now() + interval '5 seconds'")) for _ in range(5)]
    ended: list[int] = []

    def round_of_work() -> bool:
        queue.call("maintain")
        taken = queue.dequeue(7)
        queue.call("maintain")
        queue.complete(*taken)
        ended.extend(ids(taken))
        pass_time(queue.conn, 2)
        return len(ended) == len(sent)

    until(round_of_work)
    assert sorted(ended) == sorted(sent)


def test_used_keys_are_cleaned_up_a_few_at_a_time(queue: Queue) -> None:
    for n in range(5):
        queue.send(idempotency_key=str(n))
    queue.complete(*queue.dequeue(5))
    pass_time(queue.conn, 90_000)
    assert [queue.call("cleanup_used_keys", 2) for _ in range(4)] == [2, 2, 1, 0]


def test_an_idle_queue_is_clean(queue: Queue) -> None:
    queue.call("channel_set", "narrow", 3, 1000)
    for channel in ("work", "narrow"):
        queue.send_batch(channel, 30)
        for n in range(10):
            queue.send(channel, ordering_key=f"k{n % 3}", idempotency_key=f"{n}")
    done: list[int] = []
    until(lambda: done.extend(queue.complete(*queue.dequeue(10))) or len(done) == 80)
    queue.call("maintain")
    pass_time(queue.conn, 100_000)
    queue.call("maintain")
    left = {
        table: queue.one(f"select count(*) from menzil.{table}")
        for table in ("run", "line", "aside", "scheduled", "key_queue", "lease", "key", "withdrawn", "queue")
    }
    assert left == dict.fromkeys(left, 0)
    assert (
        queue.one(
            "select in_flight from menzil.gate g join menzil.channel c on c.id = g.channel_id where name = 'narrow'"
        )
        == 0
    )
    assert queue.one("select coalesce(sum(change), 0) from menzil.size_change") == 0
    assert queue.one("select count(*) from menzil.archive where status = 'completed'") == 80


def test_counters_equal_counted_rows_after_a_mixed_day(queue: Queue) -> None:
    queue.call("channel_set", "work", 4, 100)
    sent = queue.send_batch("work", 40)
    done: set[int] = set()
    turn = 0

    def work() -> bool:
        nonlocal turn
        for message in queue.dequeue(4):
            turn += 1
            if turn % 5 == 0:
                queue.defer(message)
            elif turn % 7 == 0:
                queue.fail(message, retry_after="0")
            elif turn % 11 == 0:
                pass_time(queue.conn, 61)
            else:
                done.update(id_ for id_, outcome in queue.complete(message).items() if outcome == "settled")
        return len(done) == len(sent)

    until(work)
    until(lambda: queue.call("maintain") in (None, "") and queue.one("select max(in_flight) from menzil.gate") == 0)
    assert queue.one("select coalesce(sum(change), 0) from menzil.size_change") == 0
    assert queue.one("select count(*) as rows, count(distinct id) as ids from menzil.archive") == (40, 40)


def test_the_schema_tells_which_clients_it_serves(queue: Queue) -> None:
    ((first, last),) = queue.rows("schema_window")
    assert last == queue.one("select max(version) from menzil.migration")
    assert 0 < first <= last
    # Clients without a window demand the number they were written for: the first one that fits is served.
    assert queue.call("schema_version") == first


def test_vacuum_gives_no_page_of_an_empty_hot_table_back(queue: Queue) -> None:
    """Cutting a table takes an ACCESS EXCLUSIVE lock, which dequeues and readers of a standby would meet."""
    hot = ["menzil.run", "menzil.lease", "menzil.lane"]
    kept = queue.all("select reloptions from pg_class where oid = any (%s::text[]::regclass[])", hot)
    assert len(kept) == 3
    assert all("vacuum_truncate=off" in row.reloptions for row in kept)
    queue.send_batch("work", 100)
    queue.complete(*queue.dequeue(50))
    queue.complete(*queue.dequeue(50))
    size = "select pg_relation_size('menzil.lease')"
    before = queue.one(size)
    assert before > 0
    queue.conn.execute("vacuum menzil.lease")
    assert queue.one(size) == before


def test_a_limit_below_one_is_refused_with_what_to_give(queue: Queue) -> None:
    for limit, hint in [(0, "Give 1 or more."), (-1, "Give 1 or more."), (2_000_000, "Call several times for more.")]:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            queue.call("cleanup_dlq", limit)
        assert refusal.value.diag.message_hint == hint
