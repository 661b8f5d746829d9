"""Timeouts that end a session in the middle, and servers that only read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import menzil
from menzil.cli.database import connected
from menzil.install import drift, migrate
from menzil.ops.op import Op, text
from tests.acceptance.crew import until
from tests.integration.cli.user import User

READ_ONLY = "This connection is read-only"


@contextmanager
def database_has(dsn: str, setting: str) -> Iterator[psycopg.Connection[Any]]:
    """New sessions in the database have this setting, but not the one that is lent here."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        name = conn.info.dbname
        conn.execute(f"alter database {name} set {setting}")
        yield conn
        conn.execute(f"alter database {name} reset all")


class Slow(psycopg.Connection[Any]):
    """A client that stops to think in the middle of a transaction, for longer than the server likes."""

    thinks_at, calls, witness = 0, 0, ""

    def execute(self, *args: Any, **kwargs: Any) -> psycopg.Cursor[Any]:
        self.calls += 1
        if self.calls == self.thinks_at:
            with psycopg.connect(self.witness, autocommit=True) as other:
                question = (
                    "select count(*) from pg_stat_activity where pid = %s and state = 'idle in transaction'"
                    " and clock_timestamp() < state_change + interval '300 ms'"
                )
                until(lambda: other.execute(question, [self.info.backend_pid]).fetchone() == (0,))
        return super().execute(*args, **kwargs)


@pytest.mark.parametrize("thinks_at", [6, 40])
def test_migrate_may_stop_to_think_where_idle_transactions_are_ended(fresh_db: str, thinks_at: int) -> None:
    with database_has(fresh_db, "idle_in_transaction_session_timeout = '100ms'") as witness:
        with Slow.connect(fresh_db, autocommit=True) as conn:
            conn.thinks_at, conn.witness = thinks_at, make_conninfo(fresh_db, options="")
            assert migrate(conn).changed
            assert conn.calls > thinks_at
        assert drift(witness) == []


def test_a_worker_goes_on_where_idle_sessions_are_ended(db: str, caplog: pytest.LogCaptureFixture) -> None:
    handled: list[Any] = []
    app = menzil.Worker(db, endpoints=False, poll=(0.01, 0.1))

    @app.handler("billing")
    async def bill(message: menzil.Message) -> None:
        handled.append(message.payload)

    async def story(mq: menzil.Menzil, witness: psycopg.Connection[Any]) -> None:
        ended = "select not exists (select from pg_stat_activity where application_name = 'menzil worker (settle)')"

        async def reached(condition: Any) -> None:
            async with asyncio.timeout(60):
                while not condition():
                    await asyncio.sleep(0.01)

        working = asyncio.create_task(app.serve())
        for number in range(3):
            mq.send("billing", number)
            await reached(lambda: handled[-1:] == [number])  # noqa: B023 it is called before the next round
            await reached(lambda: witness.execute("select count(*) from menzil.queue").fetchone() == (0,))
            await reached(lambda: witness.execute(ended).fetchone() == (True,))
        app.stop()
        await working

    with database_has(db, "idle_session_timeout = '300ms'") as witness, menzil.Menzil(db) as mq:
        mq.channel_set("billing")
        with caplog.at_level(logging.INFO, "menzil.worker"):
            asyncio.run(story(mq, witness))
    assert handled == [0, 1, 2]
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert said == []


def test_a_worker_whose_role_may_not_connect_often_enough_leases_nothing(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn, menzil.Menzil(db) as mq:
        mq.channel_set("billing")
        sent = mq.send("billing", 1)
        conn.execute("create role thrifty login password 'horse' connection limit 2 in role menzil_worker")
        try:
            app = menzil.Worker(make_conninfo(db, user="thrifty", password="horse"), endpoints=False)
            app.handler("billing")(lambda message: None)
            with pytest.raises(menzil.ConnectionFailedError, match="too many connections") as raised:
                asyncio.run(app.serve(once=True))
            assert "five connections" in str(raised.value)
            assert mq.status(sent).attempts == 0
        finally:
            conn.execute("drop role thrifty")


def test_a_read_only_role_is_told_so_and_may_look(db: str) -> None:
    with menzil.Menzil(db) as mq:
        mq.channel_set("billing")
        sent = mq.send("billing", 1)
    with database_has(db, "default_transaction_read_only = on"):
        user = User(db)
        with menzil.Menzil(db) as mq:
            with pytest.raises(menzil.RefusedError, match=READ_ONLY) as raised:
                mq.send("billing", 2)
            assert "default_transaction_read_only" in str(raised.value)
            with pytest.raises(menzil.RefusedError, match=READ_ONLY):
                mq.dequeue()
            assert mq.status(sent).status == "pending"
        assert READ_ONLY in user.fails("send", "billing", "2")
        assert READ_ONLY in user.fails("migrate", "--reapply")
        assert user.types("doctor").exit_code == 0
        with pytest.raises(menzil.ConnectionFailedError, match=READ_ONLY):
            asyncio.run(menzil.Worker(db).serve(once=True))
    with menzil.Menzil(db) as mq:
        assert [message.id for message in mq.dequeue(5)] == [sent]


def test_a_worker_waits_while_its_server_only_reads_and_then_settles_what_it_did(
    db: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a failover behind one address: the connections stay, the server is a standby."""
    gate = asyncio.Event()
    handled: list[int] = []
    app = menzil.Worker(db, endpoints=False, poll=(0.01, 0.1), janitors=False)

    @app.handler("billing")
    async def bill(message: menzil.Message) -> None:
        handled.append(message.id)
        await gate.wait()

    async def story(mq: menzil.Menzil, witness: psycopg.Connection[Any]) -> None:
        async def reached(condition: Any) -> None:
            async with asyncio.timeout(60):
                while not condition():
                    await asyncio.sleep(0.01)

        name = witness.info.dbname
        working = asyncio.create_task(app.serve())
        sent = mq.send("billing", 1)
        await reached(lambda: handled == [sent])
        witness.execute(f"alter database {name} set default_transaction_read_only = on")
        drop = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'menzil worker%'"
        witness.execute(drop)
        gate.set()
        await reached(lambda: READ_ONLY in caplog.text)
        witness.execute(f"alter database {name} reset all")
        await reached(lambda: mq.status(sent).status == "completed")
        app.stop()
        await working

    with menzil.Menzil(db) as mq, psycopg.connect(db, autocommit=True) as witness:
        mq.channel_set("billing")
        with caplog.at_level(logging.INFO, "menzil.worker"):
            asyncio.run(story(mq, witness))
    assert len(handled) == 1


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_client_goes_on_when_its_role_gets_another_isolation_level(db: str, level: str) -> None:
    async def story() -> None:
        async with menzil.AsyncMenzil(db) as mq:
            await mq.send("billing", 1)
            with database_has(db, f"default_transaction_isolation = '{level}'") as conn:
                _end_others(conn)
                assert [message.payload for message in await mq.dequeue(5)] == [1]

    with menzil.Menzil(db) as mq:
        mq.channel_set("billing")
        asyncio.run(story())
        mq.send("billing", 2)
        with database_has(db, f"default_transaction_isolation = '{level}'") as conn:
            _end_others(conn)
            assert [message.payload for message in mq.dequeue(5)] == [2]


def test_a_command_reads_what_is_committed_whatever_its_role_has_by_default(db: str) -> None:
    with database_has(db, "default_transaction_isolation = 'serializable'"), connected(db) as command:
        asked = Op("select current_setting('transaction_isolation')::text", (), text)
        assert command.run(asked) == "read committed"
        assert command.change(lambda: command.run(asked)) == "repeatable read"
        assert command.run(asked) == "read committed"


def _end_others(conn: psycopg.Connection[Any]) -> None:
    conn.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )


def test_arrays_without_null_are_refused_before_anything_is_sent(db: str) -> None:
    with database_has(db, "array_nulls = off"), menzil.Menzil(db) as mq:
        with pytest.raises(menzil.UsageError, match="array_nulls"):
            mq.send("billing", 1)
        with pytest.raises(menzil.UsageError, match="array_nulls"):
            asyncio.run(menzil.Worker(db).serve(once=True))
