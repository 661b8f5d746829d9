"""Handlers whose transaction is that of an ORM: SQLAlchemy's sessions in this process, Django in a real worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.pool import NullPool

import menzil
from tests.acceptance.crew import Crew, until


class Base(orm.DeclarativeBase):
    pass


class Effect(Base):
    __tablename__ = "effect"
    id: orm.Mapped[int] = orm.mapped_column(sqlalchemy.BigInteger, primary_key=True, autoincrement=False)


@pytest.fixture
def effect(crew: Crew) -> None:
    crew.conn.execute("create table effect (id bigint primary key)")


@pytest.fixture
def app(db: str) -> menzil.Worker:
    return menzil.Worker(db, endpoints=False, janitors=False)


def url(db: str, driver: str = "psycopg") -> sqlalchemy.URL:
    parts = conninfo_to_dict(db)
    return sqlalchemy.URL.create(
        f"postgresql+{driver}",
        username=str(parts["user"]),
        password=str(parts["password"]) if "password" in parts else None,
        host=str(parts["host"]),
        port=int(str(parts["port"])),
        database=str(parts["dbname"]),
    )


@pytest.fixture
def engine(db: str, request: pytest.FixtureRequest) -> Iterator[sqlalchemy.Engine]:
    found = sqlalchemy.create_engine(url(db, getattr(request, "param", "psycopg")))
    yield found
    found.dispose()


@pytest.fixture
def async_engine(db: str, request: pytest.FixtureRequest) -> AsyncEngine:
    return create_async_engine(url(db, getattr(request, "param", "psycopg")), poolclass=NullPool)


#: Committed by the transaction that wrote the effect.
TOGETHER = """select count(*) from menzil.archive a join effect e on e.id = a.id
where a.status = 'completed' and e.xmin::text::bigint = a.ended_xid::text::bigint & 4294967295"""


def answer(message: menzil.Message) -> menzil.Outcome | None:
    match message.payload:
        case "raise":
            raise ValueError("no")
        case "fail":
            return menzil.Fail("no", retry=False)
        case "defer":
            return menzil.Defer(seconds=3600, state=b"half")
        case _:
            return None


def take_the_lease(crew: Crew, message: menzil.Message) -> None:
    if message.payload == "late":
        crew.ask("delete from menzil.lease where %s between lo_id and hi_id returning 1", message.id)


def check(crew: Crew, sent: dict[str, int]) -> None:
    kept = {id for (id,) in crew.conn.execute("select id from effect").fetchall()}
    assert kept == {sent["a"], sent["b"], sent["defer"]}
    assert crew.ask(TOGETHER) == 2
    assert crew.ask("select state from menzil.queue where id = %s", sent["defer"]) == b"half"
    said = crew.ask("select last_error from menzil.queue where id = %s", sent["raise"])
    assert "ValueError: no" in said


BODIES = ["a", "b", "raise", "fail", "defer", "late"]


@pytest.mark.parametrize("engine", ["psycopg", "psycopg2"], indirect=True)
@pytest.mark.usefixtures("effect")
def test_a_sqlalchemy_session_commits_together_with_its_message(
    crew: Crew, app: menzil.Worker, engine: sqlalchemy.Engine
) -> None:
    @app.handler("work", transaction=orm.sessionmaker(engine))
    def work(message: menzil.Message, session: orm.Session) -> menzil.Outcome | None:
        session.add(Effect(id=message.id))
        take_the_lease(crew, message)
        return answer(message)

    sent = dict(zip(BODIES, crew.send("work", *BODIES), strict=True))
    tally = app.run(once=True)
    assert (tally.delivered, tally.deferred, tally.failed, tally.lost) == (2, 1, 2, 1)
    check(crew, sent)


@pytest.mark.parametrize("async_engine", ["psycopg", "asyncpg"], indirect=True)
@pytest.mark.usefixtures("effect")
def test_an_async_sqlalchemy_session_commits_together_with_its_message(
    crew: Crew, app: menzil.Worker, async_engine: AsyncEngine
) -> None:
    @app.handler("work", transaction=async_sessionmaker(async_engine))
    async def work(message: menzil.Message, session: AsyncSession) -> menzil.Outcome | None:
        session.add(Effect(id=message.id))
        await session.flush()
        take_the_lease(crew, message)
        return answer(message)

    sent = dict(zip(BODIES, crew.send("work", *BODIES), strict=True))
    tally = app.run(once=True)
    assert (tally.delivered, tally.deferred, tally.failed, tally.lost) == (2, 1, 2, 1)
    check(crew, sent)


def test_a_response_is_kept_by_every_kind_of_transaction(
    crew: Crew, app: menzil.Worker, engine: sqlalchemy.Engine, async_engine: AsyncEngine
) -> None:
    def say(message: menzil.Message, *_: Any) -> menzil.Complete:
        take_the_lease(crew, message)
        return menzil.Complete(response={"answer": 42, "token": "s3cret", "text": "\\u0000"})

    async def say_later(message: menzil.Message, *rest: Any) -> menzil.Complete:
        return say(message, *rest)

    kinds: dict[str, Any] = {
        "plain": (say, True),
        "async": (say_later, True),
        "session": (say, orm.sessionmaker(engine)),
        "async-session": (say_later, async_sessionmaker(async_engine)),
    }
    for name, (function, transaction) in kinds.items():
        app.handler(name, transaction=transaction)(function)
        crew.send(name, "a", "late")
    assert app.run(once=True).lost == len(kinds), "a lost lease is noticed where there is a response, too"
    rows = crew.conn.execute("select channel, response from menzil.archive where status = 'completed'").fetchall()
    kept = {"answer": 42, "token": "[redacted]", "text": "\\u0000"}
    assert dict(rows) == dict.fromkeys(kinds, kept)


@pytest.mark.usefixtures("effect")
def test_a_handler_that_commits_its_session_itself_is_told_so(
    crew: Crew, app: menzil.Worker, engine: sqlalchemy.Engine
) -> None:
    @app.handler("work", transaction=orm.sessionmaker(engine))
    def work(message: menzil.Message, session: orm.Session) -> None:
        session.add(Effect(id=message.id))
        session.commit()

    (id,) = crew.send("work", "a")
    app.run(once=True)
    said = crew.ask("select last_error from menzil.queue where id = %s", id)
    assert "The handler ended the transaction of its session." in said


@pytest.mark.parametrize("engine", ["psycopg", "psycopg2"], indirect=True)
@pytest.mark.usefixtures("effect")
def test_a_session_that_meets_another_transaction_runs_again(
    crew: Crew, app: menzil.Worker, engine: sqlalchemy.Engine
) -> None:
    crew.conn.execute("insert into effect values (0)")
    begun: list[int] = []

    @app.handler("work", transaction=orm.sessionmaker(engine.execution_options(isolation_level="SERIALIZABLE")))
    def work(message: menzil.Message, session: orm.Session) -> None:
        session.execute(sqlalchemy.text("select count(*) from effect"))
        if not begun:
            crew.conn.execute("update effect set id = id where id = 0")
        begun.append(message.attempt)
        session.execute(sqlalchemy.text("update effect set id = id where id = 0"))

    crew.send("work", "a")
    assert app.run(once=True).delivered == 1
    assert begun == [1, 1]


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_sessions_of_another_database_are_refused_with_a_sentence(
    crew: Crew, app: menzil.Worker, server: Any, driver: str
) -> None:
    elsewhere = sqlalchemy.create_engine(url(server.dsn, driver), poolclass=NullPool)

    @app.handler("work", transaction=orm.sessionmaker(elsewhere))
    def work(message: menzil.Message, session: orm.Session) -> None:
        pass

    (id,) = crew.send("work", "a")
    app.run(once=True)
    said = crew.ask("select last_error from menzil.queue where id = %s", id)
    assert "The transaction of the handler is in a database without menzil." in said


@pytest.mark.usefixtures("effect")
def test_djangos_transaction_commits_together_with_its_message(crew: Crew) -> None:
    sent = dict(zip(BODIES, crew.send("book", *BODIES), strict=True))
    worker = crew.drain(app="django_shop:app")
    check(crew, sent)
    assert "delivered=2" in worker.says("stopped")
    assert "lost=1" in worker.says("stopped")
    assert crew.ask("select count(*) from menzil.dlq where last_error = '[PERMANENT] no'") == 1


DJANGOS = "select count(*) from pg_stat_activity where application_name = 'django-shop'"


@pytest.mark.usefixtures("effect")
def test_a_django_worker_leaves_no_connection_open(crew: Crew) -> None:
    crew.send("plain", *map(str, range(60)))
    crew.start(app="django_shop:app")
    until(lambda: crew.completed("plain") == 60)
    until(lambda: crew.ask(DJANGOS) == 0, "Django's connections to be closed, as after a request")


@pytest.mark.usefixtures("effect")
@pytest.mark.parametrize("keep", ["", "1"])
def test_async_handlers_of_django_survive_the_loss_of_their_connection(crew: Crew, keep: str) -> None:
    crew.send("awaited", *map(str, range(20)))
    crew.start(app="django_shop:app", KEEP=keep)
    until(lambda: crew.completed("awaited") == 20)
    crew.conn.execute(DJANGOS.replace("count(*)", "pg_terminate_backend(pid)"))
    until(lambda: crew.ask(DJANGOS) == 0)
    crew.send("awaited", *map(str, range(40)))
    again = "select count(*) from menzil.queue q where q.retry_count > 0 and menzil.message_retry_now(q.id)"
    until(lambda: crew.ask(again) >= 0 and crew.completed("awaited") == 60)
    # Those that met the lost connection failed once; a connection that is not kept was closed before.
    failed = "select count(*), count(distinct message_id) from menzil.attempts where outcome = 'failed'"
    tries, messages = crew.conn.execute(failed).fetchone() or (0, 0)
    assert tries == (messages if keep else 0)


def test_a_handler_that_blocks_djangos_thread_holds_no_other_message(crew: Crew) -> None:
    for channel in ("blocking", "thinking"):
        crew.ask("select menzil.channel_set(%s)", channel)
    worker = crew.start("--grace", "0", app="django_shop:app")
    crew.send("blocking", "x")
    until(crew.traced, "the thread to be taken")
    crew.send("thinking", "raise", *map(str, range(20)))
    until(lambda: crew.completed("thinking") == 20, "successes")
    until(lambda: crew.ask("select count(*) from menzil.attempts where outcome = 'failed'") == 1, "the failure")
    crew.gate.touch()
    until(lambda: crew.completed("blocking") == 1)
    assert worker.stop() == 0


def test_a_django_worker_uses_its_slots_for_many_messages(crew: Crew) -> None:
    crew.send("counted", *map(str, range(30)))
    crew.start(app="django_shop:app")
    until(lambda: crew.completed("counted") == 30)
    assert crew.traced("1") == [["1"]] * 30


@pytest.mark.usefixtures("effect")
def test_a_hook_that_writes_with_django_survives_the_loss_of_its_connection(crew: Crew) -> None:
    written = "select count(*) from effect where id = %s"
    (first,) = crew.send("raising", "x")
    crew.start(app="django_shop:reporting", KEEP="1")
    until(lambda: crew.ask(written, first) == 1)
    crew.conn.execute(DJANGOS.replace("count(*)", "pg_terminate_backend(pid)"))
    until(lambda: crew.ask(DJANGOS) == 0)
    failed = "select exists (select from menzil.attempts where message_id = %s)"
    for _ in range(2):  # the hook meets the loss with the first, and has another connection for the second
        (last,) = crew.send("raising", "x")
        until(lambda id=last: crew.ask(failed, id))  # type: ignore[misc]
    assert crew.ask(written, last) == 1


@pytest.mark.usefixtures("effect")
def test_a_django_worker_survives_the_loss_of_its_connections(crew: Crew) -> None:
    crew.send("plain", *map(str, range(20)))
    crew.start(app="django_shop:app", KEEP="1")
    until(lambda: crew.completed("plain") == 20)
    assert 0 < crew.ask(DJANGOS) <= 10
    crew.conn.execute(DJANGOS.replace("count(*)", "pg_terminate_backend(pid)"))
    until(lambda: crew.ask(DJANGOS) == 0)
    crew.send("plain", *map(str, range(40)))
    # A thread notices the loss with one message, which is tried again; Django then gives it another connection.
    again = "select count(*) from menzil.queue q where q.retry_count > 0 and menzil.message_retry_now(q.id)"
    until(lambda: crew.ask(again) >= 0 and crew.completed("plain") == 60)
    assert crew.ask("select count(*) from menzil.attempts where outcome = 'failed'") <= 10
