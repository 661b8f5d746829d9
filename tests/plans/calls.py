"""Calls of every function on the way of a message, often enough for PostgreSQL to settle on generic plans."""

from __future__ import annotations

from bench.payloads import numbers_literal, text
from tests.plans.capture import Capture

ROUNDS = 7  # the plan cache makes five custom plans before it considers a generic one

_DEQUEUE = "select id, num_attempts from menzil.message_dequeue(%s, %s, %s::text[])"


def everything(capture: Capture) -> None:
    """The whole life of messages, in all the ways it can go."""
    for round_ in range(ROUNDS):
        send(capture, round_)
        consume(capture)
        lose(capture)
        wait(capture)
        capture.run("select menzil.maintain()")


def send(capture: Capture, round_: int) -> None:
    """Single, with everything, in batches."""
    body = text(round_)
    capture.run("select menzil.send('c0', %s::jsonb)", (body,))
    capture.run(
        "select menzil.send_with_options('c0', %s::jsonb, p_priority => 3, p_ordering_key => 'k',"
        " p_idempotency_key => %s, p_expires_at => now() + interval '1 hour')",
        (body, f"once-{round_}"),
    )
    capture.run("select menzil.send_batch('c0', array_fill(%s::jsonb, array[150]))", (body,))
    capture.run(
        "select menzil.send_many(array_fill('c0'::text, array[20]), array_fill(%s::jsonb, array[20]),"
        " p_ordering_keys => array(select 'k' || g from generate_series(1, 20) g),"
        " p_idempotency_keys => array(select %s || g from generate_series(1, 20) g))",
        (body, f"many-{round_}-"),
    )


def consume(capture: Capture) -> None:
    """Dequeue from all channels and from some; each ending there is."""
    ids, attempts = lease(capture, 100)
    capture.run("select * from menzil.message_heartbeat(%s::bigint[], %s::bigint[], 30000)", (ids, attempts))
    capture.run("select * from menzil.message_complete(%s::bigint[], %s::bigint[])", (ids, attempts))
    ids, attempts = lease(capture, 5, ["c0"])
    capture.run("select * from menzil.message_defer(%s::bigint[], %s::bigint[])", (ids, attempts))
    for error in ("[RETRYABLE] later", "[PERMANENT] never"):
        ids, attempts = lease(capture, 5)
        count = ids.count(",") + 1
        errors = "{" + ",".join([f'"{error}"'] * count) + "}"
        capture.run(
            "select * from menzil.message_fail(%s::bigint[], %s::bigint[], %s::text[])", (ids, attempts, errors)
        )
    [(one,)] = capture.run("select id from menzil.message_dequeue(30000, 1)")
    capture.run("select * from menzil.message_status(%s)", (one,))
    ids, attempts = lease(capture, 3)
    for _ in range(2):
        rows = capture.run(
            "select id, num_attempts from menzil.message_next(%s::bigint[], %s::bigint[], 30000, 3)"
            " where outcome is null",
            (ids, attempts),
        )
        assert rows, "there was nothing to lease"
        ids, attempts = numbers_literal([row[0] for row in rows]), numbers_literal([row[1] for row in rows])
    [(last,)] = capture.run("select menzil.send('c0', '1')")
    assert capture.run("select menzil.message_cancel(%s)", (last,)) == [(True,)]


def lose(capture: Capture) -> None:
    """Leases that expire and are taken back."""
    lease(capture, 10, lock_ms=1)
    capture.run("select menzil.recover_stale_messages()")


def wait(capture: Capture) -> None:
    """Scheduled messages that become due: sent for later, then moved into the past, so that nobody has to wait."""
    capture.run("select menzil.send_with_options('c0', '1', p_scheduled_at => clock_timestamp() + interval '1 ms')")
    capture.run("select * from menzil.message_dequeue(30000, 3)")


def lease(capture: Capture, limit: int, channels: list[str] | None = None, lock_ms: int = 30_000) -> tuple[str, str]:
    """Lease some messages; their ids and attempts as array literals."""
    rows = capture.run(_DEQUEUE, (lock_ms, limit, channels))
    assert rows, "there was nothing to lease"
    return numbers_literal([row[0] for row in rows]), numbers_literal([row[1] for row in rows])
