"""Durations may be a timedelta wherever Python takes seconds."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import menzil

HOUR = timedelta(hours=1)


def test_a_timedelta_says_how_long_wherever_seconds_do(mq: menzil.Menzil) -> None:
    mq.channel_set("billing", release_interval=timedelta(milliseconds=1), release_count=1000)
    sent = mq.send("billing", 1, expires_in=2 * HOUR)
    later = mq.send("billing", 2, delay=HOUR)
    raw = mq.send("billing", b"3", delay=HOUR)
    (many,) = mq.send_many([menzil.Send("billing", 4, delay=HOUR, expires_in=2 * HOUR)])
    for message_id in (later, raw, many):
        status = mq.status(message_id)
        assert status.scheduled_at is not None
        assert status.scheduled_at - status.created_at == pytest.approx(HOUR, abs=timedelta(minutes=1))
    (message,) = mq.dequeue(lease=HOUR)
    assert message.id == sent
    assert message.expires_at is not None
    assert message.expires_at - message.created_at == pytest.approx(2 * HOUR, abs=timedelta(minutes=1))
    assert message.unlock_at is not None
    assert message.unlock_at - message.created_at > timedelta(minutes=59)
    mq.heartbeat(message, 2 * HOUR)
    assert mq.heartbeat_many([message], 3 * HOUR)[0].ok
    mq.fail(message, "busy", retry_after=HOUR)
    status = mq.status(sent)
    assert status.next_retry_at is not None
    assert status.next_retry_at - status.created_at > timedelta(minutes=59)
    mq.schedule_create("nightly", "0 3 * * *", "billing", 1, expires_after=HOUR)


@pytest.mark.parametrize("wrong", [timedelta(seconds=-1), "5", True])
def test_what_is_no_duration_is_refused(mq: menzil.Menzil, wrong: object) -> None:
    with pytest.raises(menzil.InvalidValueError, match="seconds"):
        mq.send("billing", 1, delay=wrong)  # type: ignore[arg-type]


def test_a_worker_and_its_handlers_take_timedeltas(db: str) -> None:
    app = menzil.Worker(
        db,
        lease=timedelta(minutes=1),
        grace=timedelta(seconds=5),
        poll=(timedelta(milliseconds=10), timedelta(milliseconds=50)),
        endpoints=False,
        janitors=False,
    )
    seen = []

    @app.handler("failing", lease=timedelta(minutes=2))
    async def fail(message: menzil.Message) -> menzil.Fail:
        seen.append(message.id)
        return menzil.Fail("busy", retry=HOUR)

    @app.handler("deferring")
    def defer(message: menzil.Message) -> menzil.Defer:
        seen.append(message.id)
        return menzil.Defer(seconds=HOUR)

    with menzil.Menzil(db, timeout=timedelta(seconds=10)) as mq:
        for channel in ("failing", "deferring"):
            mq.channel_set(channel)
            mq.send(channel, 1)
        asyncio.run(app.serve(once=True))
        assert sorted(seen) == [1, 2]
        assert mq.dequeue(limit=5) == []
        for message_id in seen:
            status = mq.status(message_id)
            due = status.next_retry_at or status.scheduled_at
            assert due is not None
            assert due - status.created_at > timedelta(minutes=59)


@pytest.mark.parametrize("option", ["lease", "grace"])
def test_a_worker_refuses_what_is_no_duration(option: str) -> None:
    with pytest.raises(menzil.UsageError, match=f"The {option} must be a number of seconds or a timedelta, not str"):
        menzil.Worker("dbname=x", **{option: "30"})  # type: ignore[arg-type]
