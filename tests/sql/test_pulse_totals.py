"""pulse_totals: what passed since the pulse began to count, for counters that never fall."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue

NUMBERS = ("sent", "completed", "dead", "expired", "cancelled", "deferred")


@pytest.fixture
def queue(db: str) -> Iterator[Queue]:
    """A database of its own: the pulse remembers how far it has counted."""
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('work')")
        yield Queue(conn)


def totals(queue: Queue, *params: Any) -> dict[str | None, Any]:
    queue.one("select menzil._pulse(100000)")
    return {row.channel: row for row in queue.rows("pulse_totals", *params)}


def test_totals_are_the_sums_of_the_pulse(queue: Queue) -> None:
    queue.call("channel_set", "mail")
    queue.send_batch("work", 6)
    queue.send("mail")
    one, two, three, four = queue.dequeue(4, ["work"])
    queue.call("message_complete", one.id, one.num_attempts)
    queue.call("message_fail", two.id, two.num_attempts, "HTTP 502 Bad Gateway")
    queue.call("message_fail", three.id, three.num_attempts, "[PERMANENT] HTTP 410 Gone")
    queue.one("select menzil.message_defer(%s, %s)", four.id, four.num_attempts)
    totals(queue)
    queue.call("channel_purge", "mail")
    found = totals(queue)
    assert found["work"].sent == 6
    assert found["mail"].cancelled == 1
    assert found["work"].failed == [0, 0, 0, 0, 1, 1]
    assert sum(found["work"].ended_ms) == 2
    for channel in (None, "work", "mail"):
        sums = queue.all("select * from menzil.pulse_of(%s, '-infinity', p_step := '1 day')", channel)
        for number in NUMBERS:
            assert getattr(found[channel], number) == sum(getattr(row, number) for row in sums), (channel, number)
    assert sum(found[None].failed) + found[None].recovered == sum(
        row.failed_tries for row in queue.rows("pulse_of", None, "-infinity")
    )


def test_a_lease_that_ran_out_is_a_recovered_try(queue: Queue) -> None:
    queue.send("work")
    queue.dequeue(1, lock_ms=1)
    while not queue.one("select menzil.recover_stale_messages(10)"):
        pass
    assert totals(queue)["work"].recovered == 1


def test_totals_stay_when_the_pulse_forgets(queue: Queue) -> None:
    queue.send_batch("work", 3)
    assert totals(queue)["work"].sent == 3
    queue.conn.execute("truncate menzil.pulse_minute, menzil.pulse_hour")
    queue.send("work")
    assert totals(queue)["work"].sent == 4


def test_a_round_that_counts_nothing_writes_nothing(queue: Queue) -> None:
    queue.send("work")
    totals(queue)
    before = queue.all("select channel_id, xmin::text from menzil.pulse_total order by 1")
    totals(queue)
    assert queue.all("select channel_id, xmin::text from menzil.pulse_total order by 1") == before


def test_the_busiest_come_first_and_those_asked_for_come_always(queue: Queue) -> None:
    for n in range(4):
        queue.call("channel_set", f"work-{n}")
        queue.send_batch(f"work-{n}", n + 1)
    assert totals(queue, 2).keys() == {None, "work-3", "work-2"}
    assert totals(queue, 1, ["work-0", "nowhere"]).keys() == {None, "work-3", "work-0"}
    assert totals(queue, 100)[None].sent == 10


def test_a_channel_that_was_never_used_has_zeros(queue: Queue) -> None:
    found = totals(queue)["work"]
    assert (found.sent, found.since) == (0, None)
    assert found.ended_ms == found.try_ms == [0] * 12


def test_a_dropped_channel_is_in_the_sum_alone(queue: Queue) -> None:
    queue.send("work")
    totals(queue)
    queue.call("channel_purge", "work")
    queue.call("channel_release", "work")
    queue.one("select menzil._finish_releases()")
    found = totals(queue)
    assert found.keys() == {None}
    assert found[None].sent == 1


@pytest.mark.parametrize("limit", [0, -1, 10_001, None])
def test_a_limit_out_of_range_is_refused(queue: Queue, limit: int | None) -> None:
    with pytest.raises(psycopg.DatabaseError):
        queue.rows("pulse_totals", limit)
