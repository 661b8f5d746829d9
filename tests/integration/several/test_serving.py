"""One worker on several databases: which it serves, how it shares, and what one of them does to the others."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import menzil
from menzil.embedded import Embedded
from menzil.model.errors import MenzilError, SchemaError
from menzil.model.version import SCHEMA_VERSION_KNOWN
from menzil.worker.company import Company
from tests.conftest import adopt
from tests.integration.several.conftest import Make, fill, left

NOWHERE = "host=127.0.0.1 port=1 dbname=gone"


async def until(condition: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends, what
        await asyncio.sleep(0.01)


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run


def events(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith(event)]


def test_a_message_tells_its_handler_which_database_it_came_from(make: Make) -> None:
    app = menzil.Worker({"shop": make(3), "crm": make(2)}, endpoints=False)
    seen: Counter[str | None] = Counter()

    @app.handler("orders")
    async def handle(message: menzil.Message) -> None:
        seen[message.database] += 1

    tally = app.run(once=True)
    assert seen == {"shop": 3, "crm": 2}
    assert tally.delivered == 5


def test_a_worker_on_one_database_names_it_too(make: Make) -> None:
    dsn = make(1)
    app, seen = menzil.Worker(dsn, endpoints=False), list[str | None]()

    @app.handler("orders")
    async def handle(message: menzil.Message) -> None:
        seen.append(message.database)

    app.run(once=True)
    said = conninfo_to_dict(dsn)
    assert seen == [f"{said['dbname']}@{said['host']}:{said['port']}"]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_many_messages_in_one_database_do_not_starve_another(make: Make, concurrency: int) -> None:
    app = menzil.Worker({"many": make(400), "few": make(10)}, endpoints=False)
    order, running, most = list[str | None](), 0, 0

    @app.handler("orders", concurrency=concurrency)
    async def handle(message: menzil.Message) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        order.append(message.database)
        running -= 1

    app.run(once=True)
    assert Counter(order) == {"many": 400, "few": 10}
    assert most == concurrency  # that of the process, and all of it is used
    last = max(place for place, name in enumerate(order) if name == "few")
    beside = order[order.index("few") : last].count("many")
    assert beside < 200, f"{beside} of the others were handled between the first and the last of the few"


def test_on_start_and_on_stop_are_called_once(make: Make) -> None:
    app, called = menzil.Worker([make(1), make(1)], endpoints=False), list[str]()

    @app.on_start
    def start() -> None:
        called.append("start")

    @app.on_stop
    def stop() -> None:
        called.append("stop")

    @app.handler("orders")
    def handle(message: menzil.Message) -> None:
        called.append("message")

    app.run(once=True)
    assert called == ["start", "message", "message", "stop"]


def test_one_database_under_two_addresses_is_served_once(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    dsn = make(50)
    other = make_conninfo(dsn, host="localhost")
    assert other != dsn
    app, seen = menzil.Worker({"a": dsn, "b": other}, endpoints=False), list[int]()

    @app.handler("orders")
    async def handle(message: menzil.Message) -> None:
        seen.append(message.id)

    with caplog.at_level(logging.INFO, "menzil.worker"):
        app.run(once=True)
    assert len(seen) == len(set(seen)) == 50
    (line,) = events(caplog, "database_refused")
    assert "It is the same database as" in line
    assert len(events(caplog, "started")) == 1


def test_an_older_schema_is_refused_with_one_sentence_and_the_others_are_served(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    old, good = make(1), make(5)
    with psycopg.connect(old, autocommit=True) as conn:
        conn.execute("drop function menzil.schema_window()")
        conn.execute("create or replace function menzil.schema_version() returns integer language sql return 5")
    app = menzil.Worker({"old": old, "good": good}, endpoints=False)

    @app.handler("orders")
    async def handle(message: menzil.Message) -> None:
        assert message.database == "good"

    with caplog.at_level(logging.INFO, "menzil.worker"), pytest.raises(MenzilError) as refused:
        app.run(once=True)
    sentence = f"The database has schema 5; this worker needs {SCHEMA_VERSION_KNOWN}."
    assert refused.value.message == f"1 of 2 databases were not served: old: {sentence}"
    (line,) = events(caplog, "database_refused")
    assert "database=old" in line
    assert sentence in line
    assert left(good) == 0


def test_a_worker_whose_databases_all_refuse_ends(make: Make, fresh_db: str) -> None:
    app = menzil.Worker([fresh_db], endpoints=True)
    with pytest.raises(SchemaError, match="menzil is not installed"):
        app.run()


@in_loop
async def test_a_database_that_comes_up_later_is_served_then(
    make: Make, server: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    here, late = make(5), make_conninfo(server.dsn, dbname="several_late")
    app, seen = menzil.Worker({"here": here, "late": late}, endpoints=False, poll=(0.01, 0.05)), Counter[str | None]()

    @app.handler("orders")
    async def handle(message: menzil.Message) -> None:
        seen[message.database] += 1

    with caplog.at_level(logging.INFO, "menzil.worker"):
        running = asyncio.create_task(app.serve())
        await until(lambda: seen["here"] == 5, "the first database")
        await until(lambda: app.databases["late"] == "unreachable", "the second is told")
        async with await psycopg.AsyncConnection.connect(server.dsn, autocommit=True) as conn:
            await conn.execute(b"create database several_late template installed")
            try:
                await asyncio.to_thread(adopt, late)
                await asyncio.to_thread(fill, late, 7)
                await until(lambda: seen["late"] == 7, "the second database")
                assert app.databases == {"here": "served", "late": "served"}
                app.stop()
                await running
            finally:
                await conn.execute(b"drop database several_late with (force)")
    assert len(events(caplog, "database_unreachable")) == 1
    password = str(conninfo_to_dict(server.dsn)["password"])
    assert not [record for record in caplog.records if password in record.getMessage()]


@in_loop
async def test_a_database_that_leaves_finishes_what_is_under_way(make: Make) -> None:
    going, staying = make(20), make(0)
    app, begun, ended = menzil.Worker({"going": going, "staying": staying}, endpoints=False), [0], [0]
    gate = asyncio.Event()

    @app.handler("orders", concurrency=5)
    async def handle(message: menzil.Message) -> None:
        begun[0] += 1
        await gate.wait()
        ended[0] += 1

    running = asyncio.create_task(app.serve())
    await until(lambda: begun[0] == 5, "five deliveries")
    app.change({"staying": staying})
    await until(lambda: app.databases.get("going") == "leaving", "it leaves")
    company = app._company
    assert isinstance(company, Company)
    leaving = company._branches["going"].shift
    app.change({"staying": staying})  # read again: it goes on to leave, and finishes what is under way
    assert leaving is not None
    assert not leaving._force.is_set()
    gate.set()
    await until(lambda: "going" not in app.databases, "it has left")
    assert ended[0] == 5
    assert await asyncio.to_thread(left, going) == 15
    app.change({"staying": staying, "going": going})
    await until(lambda: ended[0] == 20, "it is back")
    app.stop()
    tally = await running
    assert tally.delivered == 20


@in_loop
async def test_a_database_that_is_away_takes_no_permits_from_the_others(make: Make) -> None:
    dsn = make(200)
    app, seen = menzil.Worker({"gone": NOWHERE, "here": dsn}, endpoints=False, concurrency=2), [0]

    @app.handler("orders")
    async def handle(message: menzil.Message) -> None:
        seen[0] += 1

    running = asyncio.create_task(app.serve())
    await until(lambda: seen[0] == 200, "all messages")
    app.stop()
    await asyncio.wait_for(running, 60)


@in_loop
async def test_a_database_that_hangs_leaves_the_only_permit_to_the_others(make: Make) -> None:
    """Its connection is alive and does not answer: a lock, a frozen server. Its lease under way holds no permit."""
    hung, dsn = make(10), make(300)
    app, seen = menzil.Worker({"hung": hung, "here": dsn}, endpoints=False), Counter[str | None]()

    @app.handler("orders", concurrency=1)
    async def handle(message: menzil.Message) -> None:
        seen[message.database] += 1
        await asyncio.sleep(0.005)

    running = asyncio.create_task(app.serve())
    await until(lambda: seen["hung"] > 1 and seen["here"] > 1, "both are served")
    async with await psycopg.AsyncConnection.connect(hung) as other:
        await other.execute("lock table menzil.lane, menzil.lease in access exclusive mode")
        await until(lambda: seen["here"] == 300, "all messages of the other one")
    await until(lambda: seen["hung"] == 10, "those of the one that hung, when it answers again")
    app.stop()
    await asyncio.wait_for(running, 60)


@in_loop
async def test_a_database_that_cannot_be_begun_leaves_nothing_in_the_shared_pools(make: Make) -> None:
    dsn = make(1)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.create_endpoint('hooks', 'http', '{\"url\": \"https://example.com/\"}')")
    app = menzil.Worker({"with": dsn, "without": make(0)}, channels=["orders", "hooks"])

    @app.handler("orders")
    async def handle(message: menzil.Message) -> None: ...

    running = asyncio.create_task(app.serve())
    await until(lambda: app.databases == {"with": "served", "without": "refused"}, "one is served")
    company = app._company
    assert isinstance(company, Company)
    assert [len(pool._sources) for pool in company._pools.values()] == [1] * len(company._pools)
    app.stop()
    await asyncio.wait_for(running, 60)
