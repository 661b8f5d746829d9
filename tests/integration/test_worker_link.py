"""Sources of a worker share one connection: what one call leased is begun before the next call is made."""

from __future__ import annotations

import asyncio
import logging

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.model.errors import ConnectionFailedError
from menzil.ops.op import Op
from menzil.worker.address import Address, Conn
from menzil.worker.link import Link
from menzil.worker.log import Hide, Log
from tests.acceptance.pooler import PGBOUNCER, pooler

ONE: Op[int] = Op("select 1", (), lambda rows: int(rows[0][0]))


class Watched(Link):
    """Notes when a call is about to use the connection."""

    def __init__(self, dsn: str, seen: list[str]) -> None:
        super().__init__("lease", Address(dsn), Log(Hide()))
        self._seen = seen

    async def connection(self) -> Conn:
        self._seen.append("call")
        return await super().connection()


def test_delivery_that_a_call_made_possible_begins_before_the_next_call_on_the_same_connection(db: str) -> None:
    async def work() -> list[str]:
        seen: list[str] = []
        link = Watched(db, seen)
        leased = asyncio.get_running_loop().create_future()

        async def slot() -> None:
            await leased
            seen.append("delivery")

        async def handlers() -> None:
            await link.run(ONE)
            leased.set_result(None)

        async def endpoints() -> None:
            await link.run(ONE)

        await asyncio.gather(slot(), handlers(), endpoints())
        await link.close()
        return seen

    assert asyncio.run(work()) == ["call", "delivery", "call"]


def test_database_that_accepts_no_writes_is_no_connection_until_it_accepts_them(
    db: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A lease that finds nothing writes nothing: an answer to it is no sign that the server takes writes again."""
    caplog.set_level(logging.INFO, "menzil.worker")
    write: Op[None] = Op("create table if not exists written (id int)", (), lambda _: None)

    def said() -> list[str]:
        return [record.getMessage().split()[0] for record in caplog.records]

    async def work(admin: psycopg.Connection) -> None:
        link = Link("lease", Address(db), Log(Hide()))
        name = admin.execute("select current_database()").fetchone()
        assert name is not None
        admin.execute(f"alter database {name[0]} set default_transaction_read_only = on")
        for _ in range(2):
            with pytest.raises(ConnectionFailedError, match="read-only"):
                await link.run(write)
            with pytest.raises(ConnectionFailedError, match="read-only"):
                await link.run(ONE)
        assert said() == ["connection_lost"]
        admin.execute("set default_transaction_read_only = off")
        admin.execute(f"alter database {name[0]} reset default_transaction_read_only")
        assert await link.run(ONE) == 1
        assert said() == ["connection_lost", "connected_again"]
        await link.close()

    with psycopg.connect(db, autocommit=True) as admin:
        asyncio.run(work(admin))


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_server_that_accepts_writes_again_is_found_behind_a_pooler_that_repeats_old_words(db: str) -> None:
    """PgBouncer announces to each client what the first server connection of its pool announced."""
    write: Op[None] = Op("create table if not exists written (id int)", (), lambda _: None)

    async def work(dsn: str, admin: psycopg.Connection, name: str) -> None:
        link = Link("lease", Address(dsn), Log(Hide()))
        for _ in range(2):
            with pytest.raises(ConnectionFailedError, match="read-only"):
                await link.run(write)
        admin.execute("set default_transaction_read_only = off")
        admin.execute(f"alter database {name} reset default_transaction_read_only")
        ends = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> pg_backend_pid()"
        admin.execute(ends, (name,))

        async def until_it_answers() -> bytes | None:
            while True:
                try:
                    await link.run(ONE)
                except ConnectionFailedError:
                    await link.rest(0.1)
                else:
                    return (await link.connection()).pgconn.parameter_status(b"default_transaction_read_only")

        assert await asyncio.wait_for(until_it_answers(), 60) == b"on", "the pooler repeats what was true"
        await link.close()

    with psycopg.connect(db, autocommit=True) as admin:
        row = admin.execute("select current_database()").fetchone()
        assert row is not None
        admin.execute(f"alter database {row[0]} set default_transaction_read_only = on")
        with pooler(db) as dsn:
            asyncio.run(work(dsn, admin, row[0]))


def test_standby_that_could_not_be_reached_between_two_looks_is_still_a_standby(
    db: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "menzil.worker")
    write: Op[None] = Op("create table if not exists written (id int)", (), lambda _: None)

    async def work() -> None:
        address = Address(db)
        link = Link("lease", address, Log(Hide()))
        with pytest.raises(ConnectionFailedError, match="read-only"):
            await link.run(write)
        address.dsn = make_conninfo(db, port=1)
        with pytest.raises(ConnectionFailedError, match="refused"):
            await link.run(ONE)
        address.dsn = db
        with pytest.raises(ConnectionFailedError, match="read-only"):
            await link.run(ONE)
        assert [record.getMessage().split()[0] for record in caplog.records] == ["connection_lost"]
        await link.close()

    with psycopg.connect(db, autocommit=True) as admin:
        row = admin.execute("select current_database()").fetchone()
        assert row is not None
        admin.execute(f"alter database {row[0]} set default_transaction_read_only = on")
        asyncio.run(work())
