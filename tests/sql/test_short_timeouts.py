"""Work that is too long for one call of a role with a short statement_timeout: each call commits a part of it."""

from __future__ import annotations

import contextlib

import psycopg
import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue

MANY = 30_000
SHORT = "250ms"


def expired(queue: Queue) -> None:
    queue.conn.execute(
        """select menzil.send_many(array_fill('work'::text, array[n]), array_fill('1'::jsonb, array[n]),
                                   p_expires_ats := array_fill(clock_timestamp() + interval '1 hour', array[n]))
             from (select %s::integer) s(n)""",
        [MANY],
    )
    pass_time(queue.conn, 3601)


def lost(queue: Queue) -> None:
    queue.conn.execute("select menzil.send_batch('work', array_fill('1'::jsonb, array[%s::integer]))", [MANY])
    for _ in range(MANY // 10_000):
        assert len(queue.dequeue(10_000)) == 10_000
    pass_time(queue.conn, 61)


def cancelled(queue: Queue) -> None:
    queue.conn.execute("select menzil.send_batch('work', array_fill('1'::jsonb, array[%s::integer]))", [MANY // 3])
    queue.lease()
    queue.conn.execute("select menzil.message_cancel(id) from menzil.queue where status = 'pending'")


def cancelled_in_several_channels(queue: Queue) -> None:
    for name in ("one", "two"):
        queue.call("channel_set", name)
        queue.conn.execute(
            "select menzil.send_batch(%s, array_fill('1'::jsonb, array[%s::integer]))", [name, MANY // 6]
        )
    queue.conn.execute("select menzil.message_cancel(id) from menzil.queue where status = 'pending'")


def expired_in_many_channels(queue: Queue) -> None:
    for number in range(40):
        queue.call("channel_set", f"c{number}")
        queue.conn.execute(
            """select menzil.send_many(array_fill(%s::text, array[n]), array_fill('1'::jsonb, array[n]),
                                       p_expires_ats := array_fill(clock_timestamp() + interval '1 hour', array[n]))
                 from (select 1000) s(n)""",
            [f"c{number}"],
        )
    pass_time(queue.conn, 3601)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fate", "timeout"),
    [
        pytest.param(expired, SHORT, id="expired"),
        pytest.param(lost, SHORT, id="lost"),
        pytest.param(cancelled, SHORT, id="cancelled"),
        pytest.param(cancelled_in_several_channels, SHORT, id="cancelled in several channels"),
        pytest.param(expired_in_many_channels, "50ms", id="expired in many channels"),
    ],
)
def test_thousands_to_clear_away_do_not_stop_consumers_with_a_short_timeout(
    queue: Queue, connect, fate, timeout: str
) -> None:
    hurried = Queue(connect(options=f"-c statement_timeout={timeout}"))
    fate(queue)
    queue.call("channel_set", "other")
    sent = queue.send("other")
    taken: list[int] = []

    def come() -> bool:
        with contextlib.suppress(psycopg.errors.QueryCanceled):
            taken.extend(message.id for message in hurried.dequeue(100))
        return sent in taken

    until(come)
