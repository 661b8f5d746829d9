"""How searches find their way: the id of a time, and messages by their keys."""

from __future__ import annotations

import pytest

from tests.sql.queue import Queue


def aged(queue: Queue, ids: list[int], days: float) -> None:
    """As if these had been sent so long ago."""
    queue.conn.execute("select menzil._ensure_archive_months(now() - interval '40 days', 2)")
    queue.conn.execute(
        "update menzil.message set created_at = created_at - %s * interval '1 day' where id = any (%s)", (days, ids)
    )


def id_at(queue: Queue, days_ago: float) -> int | None:
    return queue.one("select menzil.message_id_at(clock_timestamp() - %s * interval '1 day')", days_ago)


def test_an_empty_queue_has_no_id_of_any_time(queue: Queue) -> None:
    assert id_at(queue, 1) is None


def test_the_id_of_a_time_is_where_its_messages_begin(queue: Queue) -> None:
    old, middle, new = (queue.send_batch("work", 7) for _ in range(3))
    aged(queue, old, 30)
    aged(queue, middle, 10)
    assert id_at(queue, 100) == old[0]
    assert old[-1] < (id_at(queue, 20) or 0) <= middle[0]
    assert middle[-1] < (id_at(queue, 5) or 0) <= new[0]
    assert id_at(queue, -1) is None


@pytest.mark.parametrize("kept", [0, 1, 250, 499])
def test_gaps_between_ids_do_not_matter(queue: Queue, kept: int) -> None:
    ids = queue.send_batch("work", 500)
    new = queue.send()
    aged(queue, ids, 3)
    queue.conn.execute("delete from menzil.message where id = any (%s) and id <> %s", (ids, ids[kept]))
    assert ids[kept] < (id_at(queue, 1) or 0) <= new
    assert (id_at(queue, 10) or 0) <= ids[kept]


def found(queue: Queue, **given: object) -> list[int]:
    return sorted(
        row.id for row in queue.rows("messages_with_key", **{f"p_{name}": one for name, one in given.items()})
    )


def test_an_ordering_key_finds_its_live_messages_and_no_ended_one(queue: Queue) -> None:
    queue.call("channel_set", "mail")
    first, second = queue.send(ordering_key="k"), queue.send(ordering_key="k")
    other = queue.send("mail", ordering_key="k")
    queue.send(ordering_key="l")
    assert found(queue, ordering_key="k") == [first, second, other]
    assert found(queue, ordering_key="k", channel="work") == [first, second]
    assert found(queue, ordering_key="k", channel="work", limit=1) == [first]
    queue.complete(queue.lease(["work"]))
    assert found(queue, ordering_key="k") == [second, other]
    assert found(queue) == found(queue, ordering_key="") == []


def test_an_idempotency_key_finds_the_message_that_holds_it(queue: Queue) -> None:
    holder = queue.send(idempotency_key="once")
    assert found(queue, idempotency_key="once") == [holder]
    assert found(queue, idempotency_key="once", channel="work") == [holder]
    queue.complete(queue.lease())
    assert found(queue, idempotency_key="once") == [holder]
    assert found(queue, idempotency_key="twice") == []


def window(queue: Queue, limit: int = 100, before: int = 2**62, size: int = 20_000, **given: object) -> list[int]:
    """Ids that match, newest first."""
    named = {f"p_{name}": one for name, one in given.items()}
    rows = queue.rows("messages_in_window", p_before=before, p_window=size, p_limit=limit, **named)
    return [row.id for row in rows if row.passed is None]


def test_a_window_finds_messages_by_what_became_of_them(queue: Queue) -> None:
    queue.call("channel_set", "mail")
    done, dead, flying, waiting = queue.send_batch("work", 4)
    mail = queue.send("mail")
    leased = {one.id: one for one in queue.dequeue(3, ["work"])}
    queue.complete(leased[done])
    queue.fail(leased[dead], "[PERMANENT] Timed Out for ever")
    assert window(queue) == [mail, waiting, flying, dead, done]
    assert window(queue, status=["completed"]) == [done]
    assert window(queue, status=["failed"]) == [dead]
    assert window(queue, status=["processing"]) == [flying]
    assert window(queue, status=["pending"]) == [mail, waiting]
    assert window(queue, status=["pending", "completed"]) == [mail, waiting, done]
    assert window(queue, channel="work", status=["pending"]) == [waiting]
    assert window(queue, error="timed out") == [dead]
    assert window(queue, error="timed out", status=["completed"]) == []
    assert window(queue, limit=2) == [mail, waiting]
    assert window(queue, before=mail, limit=1) == [waiting]
    assert window(queue, channel="nobody") == []


def test_a_window_says_how_far_it_looked_over_all_its_steps(queue: Queue) -> None:
    ids = queue.send_batch("work", 6_000)
    chosen = [ids[0], ids[4_999], ids[5_999]]
    queue.conn.execute("update menzil.message set ordering_key = 'k' where id = any (%s)", (chosen,))
    assert window(queue, ordering_key="k") == chosen[::-1]
    (end,) = queue.rows("messages_in_window", p_before=2**62, p_window=5_000, p_limit=9, p_channel="nobody")
    assert (end.id, end.passed) == (ids[1_000], 5_000)
    assert end.created_at is not None
    (end,) = queue.rows("messages_in_window", p_before=2**62, p_window=20_000, p_limit=9, p_channel="nobody")
    assert (end.id, end.passed) == (ids[0], 6_000)
    assert queue.rows("messages_in_window", p_before=ids[0], p_window=10, p_limit=9) == []
