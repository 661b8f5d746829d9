"""The outcome of a plan: each message is counted once, whether ids of a part are in a row or have gaps."""

from __future__ import annotations

from tests.sql.planning import draft, finish, kill_all, outcome, running
from tests.sql.queue import Queue


def test_every_state_is_counted_once_with_ids_in_a_row_and_with_gaps(queue: Queue) -> None:
    kill_all(queue, count=12)
    number = running(queue, "redrive", channel="work")
    finish(queue, number)
    done, dead, back, again, flying = (queue.dequeue(many) for many in (3, 2, 2, 1, 1))
    queue.complete(*done)
    for message in dead:
        assert queue.fail(message, "[PERMANENT] no") == "dead"
    for message in (*back, *again):
        assert queue.fail(message, "HTTP 503") == "retry"
    queue.call("message_retry_now", again[0].id)
    leased = queue.dequeue(20)
    assert again[0].id in [message.id for message in leased], "a message that came back once is leased again"
    queue.complete(*[message for message in leased if message.id == again[0].id])
    expected = {"completed": 4, "dead": 2, "retrying": 2, "in_flight": len(flying) + len(leased) - 1}
    assert sum(expected.values()) == 12
    assert outcome(queue, number) == expected
    queue.conn.execute("update menzil.plan_part set ids = array(select generate_series(lo_id, hi_id))")
    assert outcome(queue, number) == expected
    assert queue.one("select count(*) from menzil.plan_part where ids is null") == 0


def test_the_ends_of_the_twenty_largest_channels_are_told(queue: Queue) -> None:
    for place in range(22):
        queue.call("channel_set", f"c{place}")
        kill_all(queue, f"c{place}", count=2 if place < 20 else 1)
    rows = queue.rows("plan_targets", draft(queue, "redrive", all=True))
    assert [row.counted for row in rows] == [2] * 20 + [1] * 2
    assert all(len(row.first_ids) == 2 and row.last_id == row.first_ids[1] for row in rows[:20])
    assert [(row.first_ids, row.last_id) for row in rows[20:]] == [(None, None)] * 2
