"""A working day of a shop, as short as possible: what must go well under every setting of a database or a role.

Everything connects anew, so that the settings of the day apply: a client, plain SQL, a worker with several handlers and
an endpoint, and the command line.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

import menzil
from tests.acceptance.receiver import receiver
from tests.integration.cli.user import User

#: What text formats, encodings and escapes might spoil. Plain enough for LATIN1.
BODY = {
    "price": 0.1 + 0.2,
    "tiny": 1e-300,
    "path": "C:\\new\\t",
    "quote": 'it\'s "here"',
    "name": "Grüße",
    "none": None,
}
BYTES = bytes(range(256))
STATE = b"\\page\x00 7"


def prepare(dsn: str, owner: str | None = None) -> None:
    """What the day needs: a table to write to, and leave to deliver to this machine."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table public.booking (id bigint)")
        if owner:
            conn.execute(f"alter table public.booking owner to {owner}")
        conn.execute("select menzil.set_setting('http_allow_internal_urls', 'on')")


def work(dsn: str, case: str, findings: Collection[str] = ()) -> None:
    """Send, deliver and settle in channels of this case; then the doctor finds nothing wrong but these."""
    with menzil.Menzil(dsn) as mq:
        Day(dsn, mq, case).pass_by(findings)


class Day:
    """One day under one setting."""

    def __init__(self, dsn: str, mq: menzil.Menzil, case: str) -> None:
        self.dsn, self.mq, self.case = dsn, mq, case
        self.user = User(dsn)
        self.plain, self.booked, self.hook = f"plain-{case}", f"booked-{case}", f"hook-{case}"

    def pass_by(self, findings: Collection[str]) -> None:
        for channel in (self.plain, self.booked):
            self.mq.channel_set(channel)
        self.client()
        self.borrowed()
        asyncio.run(self.async_client())
        self.sql()
        self.worker()
        self.commands()
        told = self.user.types("doctor", "--json").stdout
        assert {one["check"] for one in json.loads(told)["findings"] if one["level"] != "ok"} == {*findings}, told

    def client(self) -> None:
        """Send, lease, look, defer, fail and complete by the client."""
        mq, channel = self.mq, self.plain
        before = datetime.now(UTC)
        first = mq.send(channel, BODY, ordering_key="k", idempotency_key="once", headers={"x-a": "b"}, priority=3)
        assert mq.send(channel, BODY, idempotency_key="once") == first
        later = mq.send(channel, 1, scheduled_at=before + timedelta(hours=1), expires_at=before + timedelta(hours=2))
        status = mq.status(later)
        assert status.scheduled_at == before + timedelta(hours=1)
        assert abs(status.created_at - before) < timedelta(minutes=1)
        assert mq.cancel(later)
        (message,) = mq.dequeue(limit=5, channels=channel)
        assert (message.id, message.payload, message.attempt) == (first, BODY, 1)
        mq.heartbeat(message, 60)
        mq.defer(message, state=STATE)
        (message,) = mq.dequeue(limit=5, channels=channel)
        assert message.state == STATE
        assert mq.fail(message, "HTTP 503 at 12.5 %", retry_after=0).value == "retry"
        (message,) = mq.dequeue(limit=5, channels=channel)
        assert (message.attempt, message.retry_count) == (3, 1)
        mq.complete(message)
        assert mq.status(first).status == "completed"
        ids = [mq.send(channel, BYTES), *mq.send_many([menzil.Send(channel, [None, "NULL"], metadata={"a": 1})])]
        got, late = mq.next((), 10, channels=channel)
        assert sorted(one.id for one in got) == ids
        assert late == []
        assert {one.id: one.content or one.payload for one in got} == {ids[0]: BYTES, ids[1]: [None, "NULL"]}
        assert mq.next(got, 10, channels=channel) == ([], [])

    def borrowed(self) -> None:
        """The same on a connection of the caller, which has every setting of the role, also its encoding."""
        with psycopg.connect(self.dsn) as conn:
            self.mq.send(self.plain, BODY, conn=conn)
            conn.rollback()
            sent = self.mq.send(self.plain, BODY, headers={"x-a": "b"}, conn=conn)
        with psycopg.connect(self.dsn) as conn:
            conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            (message,) = self.mq.dequeue(limit=5, channels=self.plain, conn=conn)
            assert (message.id, message.payload, message.headers) == (sent, BODY, {"x-a": "b"})
            self.mq.complete(message, conn=conn)
        assert self.mq.status(sent).status == "completed"

    async def async_client(self) -> None:
        """The same door, awaited, by several tasks at once."""
        async with menzil.AsyncMenzil(self.dsn) as mq:
            await asyncio.gather(*(mq.send(self.plain, number) for number in range(6)))
            batch = await mq.dequeue(limit=10, channels=self.plain)
            assert sorted(one.payload for one in batch) == list(range(6))
            assert all(answer.ok for answer in await mq.complete_many(batch))

    def sql(self) -> None:
        """What a person with psql does, in a transaction that says READ COMMITTED where that is needed."""
        # psycopg reads jsonb as UTF-8 whichever encoding the connection has.
        with psycopg.connect(self.dsn, autocommit=True, client_encoding="utf8") as conn:
            row = conn.execute("select menzil.send(%s, %s::jsonb)", (self.plain, json.dumps(BODY))).fetchone()
            assert row is not None
            conn.execute("begin isolation level read committed")
            found = conn.execute(
                "select id, num_attempts, payload from menzil.message_dequeue(60000, p_channels => array[%s])",
                [self.plain],
            ).fetchall()
            conn.execute("commit")
            assert found == [(row[0], 1, BODY)]
            # An error that begins with letters of a marker is not one: the message is tried again.
            error = "sPERMANENT [DISABLE] s[low]"
            fate = conn.execute("select menzil.message_fail(%s::bigint, 1::bigint, %s)", (*row, error)).fetchone()
            assert fate == ("retry",)
            conn.execute("select menzil.message_retry_now(%s::bigint)", row)
            conn.execute("begin isolation level read committed")
            conn.execute("select from menzil.message_dequeue(60000, p_channels => array[%s])", [self.plain])
            conn.execute("commit")
            conn.execute("select menzil.message_complete(%s::bigint, 2::bigint)", row)
            status = conn.execute("select status from menzil.archive where id = %s", row).fetchone()
            assert status == ("completed",)
            assert conn.execute("select count(*) from menzil.queue where channel = %s", [self.plain]).fetchone() == (0,)

    def worker(self) -> None:
        """Several handlers and an endpoint share the connections of one worker."""
        handled: list[Any] = []
        app = menzil.Worker(self.dsn, channels=[self.plain, self.booked, self.hook])

        @app.handler(self.plain, concurrency=3)
        async def plain(message: menzil.Message) -> menzil.Outcome | None:
            handled.append(message.payload)
            if message.payload == "again" and message.attempt == 1:
                return menzil.Fail("Parcel lost", retry=0)
            return menzil.Defer(state=STATE) if message.payload == "later" and message.attempt == 1 else None

        @app.handler(self.booked, concurrency=3, transaction=True)
        def booked(message: menzil.Message, conn: psycopg.Connection[Any]) -> None:
            conn.execute("insert into public.booking values (%s)", (message.id,))

        with receiver() as hook:
            config = json.dumps({"url": hook.url, "headers": {"x-shop": "a-b"}, "timeout_seconds": 5})
            self.user.gets("endpoint", "create", self.hook, "--config", config)
            for number in range(8):
                self.mq.send(self.plain, number)
                self.mq.send(self.booked, number)
                self.mq.send(self.hook, {"number": number, **BODY})
            self.mq.send_batch(self.plain, ["again", "later"])
            with listening() as said:
                asyncio.run(asyncio.wait_for(app.serve(once=True), 50))
            assert [line for line in said if not line.startswith(f"failed channel={self.plain} ")] == []
            bodies = sorted(map(json.loads, hook.bodies), key=lambda body: body["number"])
        assert bodies == [{"number": number, **BODY} for number in range(8)]
        assert sorted(map(str, handled)) == [*map(str, range(8)), "again", "again", "later", "later"]
        with psycopg.connect(self.dsn, client_encoding="utf8") as conn:
            ended = conn.execute(
                "select channel, status, count(*) from menzil.archive where channel = any(%s) group by 1, 2 order by 1",
                [[self.booked, self.hook]],
            ).fetchall()
            assert ended == [(self.booked, "completed", 8), (self.hook, "completed", 8)]
            assert conn.execute("select count(*) from public.booking").fetchone() == (8,)
            conn.execute("truncate public.booking")

    def commands(self) -> None:
        """The command line sends and shows."""
        sent = int(self.user.gets("send", self.plain, json.dumps(BODY)))
        assert self.user.reads("message", "show", str(sent))["payload"] == BODY
        assert self.user.gets("message", "cancel", str(sent))
        self.user.gets("channel", "list")
        self.user.gets("metrics")
        self.user.gets("schedule", "create", f"nightly-{self.case}", "0 3 * * *", self.plain, "{}")
        self.user.gets("schedule", "list")
        self.user.gets("schedule", "drop", f"nightly-{self.case}")
        self.user.gets("endpoint", "health")


@contextmanager
def listening() -> Iterator[list[str]]:
    """What the worker says that a person would have to read."""
    lines: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("menzil")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
