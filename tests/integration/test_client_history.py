"""The client and what has ended: redrive, replay, counts and cleaning up, sync and async."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import menzil


def die(mq: menzil.Menzil, error: str = "order 1 is unknown") -> int:
    sent = mq.send("billing", {"order": 42})
    (message,) = mq.dequeue()
    mq.fail(message, error, permanent=True)
    return sent


def dead_letter(db: str, message: int) -> int:
    with psycopg.connect(db) as conn:
        row = conn.execute("select id from menzil.dlq where original_message_id = %s", [message]).fetchone()
    assert row is not None
    return int(row[0])


def channel_id(db: str) -> int:
    with psycopg.connect(db) as conn:
        row = conn.execute("select id from menzil.channels where name = 'billing'").fetchone()
    assert row is not None
    return int(row[0])


def test_a_dead_letter_is_redriven_once(mq: menzil.Menzil, db: str) -> None:
    dead = dead_letter(db, die(mq))
    new = mq.redrive_message(dead)
    assert [message.id for message in mq.dequeue()] == [new]
    with pytest.raises(menzil.DisabledError, match="already"):
        mq.redrive_message(dead)
    with pytest.raises(menzil.UnknownNameError):
        mq.redrive_message(987654)


def test_a_redrive_is_undone_with_the_callers_transaction(mq: menzil.Menzil, db: str) -> None:
    dead = dead_letter(db, die(mq))
    with psycopg.connect(db) as conn:
        mq.redrive_message(dead, conn=conn)
        conn.rollback()
    assert mq.redrive_all() == 1


def test_causes_are_counted_and_one_of_them_is_redriven(mq: menzil.Menzil) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    for order in (1, 2, 3):
        die(mq, f"order {order} is unknown")
    die(mq, "no disk")
    (summary,) = mq.dlq_summary()
    assert (summary["endpoint_name"], summary["failed_count"], summary["redriven_count"]) == ("billing", 4, 0)
    assert before < summary["oldest_failed_at"] < summary["newest_failed_at"]
    most, other = mq.dlq_causes("billing")
    assert (most["error_class"], most["cause"], most["failed_count"]) == ("PERMANENT", "order # is unknown", 3)
    assert len(mq.dlq_causes(limit=1)) == 1
    assert mq.redrive_endpoint("billing", cause=most["cause"], limit=2) == 2
    assert mq.redrive_endpoint("billing", cause=other["cause"]) == 1
    assert mq.redrive_endpoint("billing") == 1
    assert mq.dlq_causes() == []


def test_what_ended_is_replayed_alone_or_by_its_time(mq: menzil.Menzil, db: str) -> None:
    start = datetime.now(UTC) - timedelta(minutes=1)
    end = start + timedelta(minutes=10)
    sent = mq.send("billing", {"order": 42})
    mq.complete(mq.dequeue()[0])
    channel = channel_id(db)
    assert mq.replay_range(channel, start, end, dry_run=True) == 1
    assert mq.replay_range(channel, start, end, status="failed") == 0
    assert mq.replay_range(channel, start, end, rate=0.01) == 1
    assert mq.dequeue() == []
    new = mq.replay_message(sent)
    (message,) = mq.dequeue()
    assert (message.id, message.payload) == (new, {"order": 42})


@pytest.mark.parametrize("rate", ["fast", True, 0, -1.0, float("nan")])
def test_a_rate_that_is_none_is_refused(mq: menzil.Menzil, db: str, rate: float) -> None:
    now = datetime.now(UTC)
    with pytest.raises(menzil.InvalidValueError):
        mq.replay_range(channel_id(db), now, now + timedelta(1), rate=rate)


def test_housekeeping_of_history_answers(mq: menzil.Menzil) -> None:
    die(mq)
    assert mq.cleanup_dlq() == 0
    assert mq.cleanup_attempts(10) == 0
    assert mq.cleanup_event_log() == 0
    assert mq.cleanup_old_archive_partitions() == 0
    with pytest.raises(menzil.InvalidValueError):
        mq.cleanup_old_archive_partitions(0)


def test_the_async_client_redrives_and_replays(mq: menzil.Menzil, db: str) -> None:
    sent = [die(mq) for _ in range(3)]
    dead, channel = dead_letter(db, sent[0]), channel_id(db)
    start = datetime.now(UTC) - timedelta(minutes=1)

    async def run() -> None:
        async with menzil.AsyncMenzil(db) as client:
            assert (await client.dlq_summary())[0]["failed_count"] == 3
            assert (await client.dlq_causes())[0]["failed_count"] == 3
            assert await client.redrive_message(dead)
            assert await client.redrive_endpoint("billing", limit=1) == 1
            assert await client.redrive_all() == 1
            assert await client.replay_message(sent[0])
            assert await client.replay_range(channel, start, start + timedelta(hours=1), status="failed") == 3
            assert await client.cleanup_dlq() == 0
            assert await client.cleanup_attempts() == 0
            assert await client.cleanup_event_log() == 0
            assert await client.cleanup_old_archive_partitions() == 0

    asyncio.run(run())
    assert len(mq.dequeue(10)) == 7
