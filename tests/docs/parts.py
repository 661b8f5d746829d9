"""What single blocks need: each part prepares one, and looks at what the block did.

A block names its part in the comment above it: `<!-- with: NAME -->`.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

import menzil
from tests.docs.running import Run
from tests.sql.clock import until


def rows(run: Run, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(run.dsn, autocommit=True) as conn:
        return conn.execute(query).fetchall()


def work(run: Run) -> None:
    """Let the app of the block deliver what waits; all of it must be done."""
    run.names["app"].run(once=True)
    assert rows(run, "select id, last_error from menzil.queue") == []


@contextmanager
def mails(run: Run) -> Iterator[None]:
    """A mailer that stops the worker once an order was booked and a mail was sent."""
    with menzil.Menzil(run.dsn) as mq, psycopg.connect(run.dsn, autocommit=True) as conn:
        conn.execute("create table booked (number integer)")
        mq.channel_set("emails")
        mq.channel_set("orders")
        mq.send("orders", {"order": 42})
        mq.send("emails", {"to": "ada"})
        sent = []

        async def send(to: str) -> None:
            sent.append(to)
            await asyncio.to_thread(until, lambda: conn.execute("select * from booked").fetchall())
            run.names["app"].stop()

        run.names["mailer"] = SimpleNamespace(send=send)
        yield
        assert (sent, rows(run, "select number from booked")) == (["ada"], [(42,)])


@contextmanager
def payloads(run: Run) -> Iterator[None]:
    run.names["app"] = menzil.Worker(run.dsn)
    with menzil.Menzil(run.dsn) as mq:
        mq.send("orders", {"number": 7, "lines": [{"article": "tea", "count": 2}], "paid_at": "2026-11-01T12:00:00Z"})
    yield
    work(run)


class Base(DeclarativeBase):
    pass


class Booked(Base):
    __tablename__ = "bookings"
    id: Mapped[int] = mapped_column(primary_key=True)
    order: Mapped[int]


@contextmanager
def bookings(run: Run) -> Iterator[None]:
    engine = create_engine(run.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        Base.metadata.create_all(engine)
        run.names |= {"app": menzil.Worker(run.dsn), "engine": engine, "sessionmaker": sessionmaker, "Booked": Booked}
        with menzil.Menzil(run.dsn) as mq:
            mq.send("orders", {"order": 43})
        yield
        work(run)
        assert rows(run, 'select "order" from bookings') == [(43,)]
    finally:
        engine.dispose()


class Pool:
    """Something that a worker opens when it starts."""

    def __init__(self) -> None:
        self.is_open = True

    @classmethod
    async def open(cls) -> Pool:
        return cls()

    async def close(self) -> None:
        self.is_open = False


@contextmanager
def hooks(run: Run) -> Iterator[None]:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    app, seen, errors = menzil.Worker(run.dsn), [], []

    @app.handler("emails")
    async def handle(message: menzil.Message) -> None:
        seen.append((tenant.get(), run.names["pool"].get().is_open))
        raise ConnectionError("no way to the mail server")

    sentry = SimpleNamespace(capture_exception=lambda error: errors.append(type(error)))
    run.names |= {"app": app, "Pool": Pool, "current_tenant": tenant, "sentry_sdk": sentry}
    with menzil.Menzil(run.dsn) as mq:
        mq.send("emails", {"to": "ada"}, headers={"tenant": "acme"})
        yield
        app.run(once=True)
        assert (seen, errors) == ([("acme", True)], [ConnectionError])
        assert mq.channel_purge("emails") == 1  # it waits for its retry


@contextmanager
def shop(run: Run) -> Iterator[None]:
    """The mail server of the README."""
    sent = []

    async def send(payload: Any) -> None:
        sent.append(payload)

    run.names["smtp"] = SimpleNamespace(send=send)
    with menzil.Menzil(run.dsn) as mq:
        mq.channel_set("emails")
        mq.send("emails", {"to": "ada"})
        mq.send("billing", {"order": 1})
        billed = rows(run, "select sum(billed) + 1 from orders")
        yield
        work(run)
    assert (sent, rows(run, "select sum(billed) from orders")) == ([{"to": "ada"}], billed)


@contextmanager
def circuit(run: Run) -> Iterator[None]:
    """Ten failures in a row, then messages 41 and 42."""
    with menzil.Menzil(run.dsn) as mq:
        mq.purge_endpoint("partner")
        mq.send_batch("partner", [{}] * 10)
        for message in mq.dequeue(10, channels="partner"):
            mq.fail(message, "HTTP 503 Service Unavailable")
            mq.cancel(message.id)
        rows(run, "select setval('menzil.message_id', 40)")
        mq.send_batch("partner", [{}, {}])
    yield


@contextmanager
def client(run: Run) -> Iterator[None]:
    with menzil.Menzil(run.dsn) as mq:
        for name in ("mail", "reports"):
            mq.channel_set(name)
        mq.send_batch("mail", [{"to": "cem"}, {"to": "dora"}])
        message, other = mq.dequeue(2, channels="mail")
        message_id = mq.send("mail", {"to": "ege"})
        run.names |= {"mq": mq, "names": ["ada", "bob"], "message": message, "other": other, "message_id": message_id}
        yield


PARTS: dict[str, Callable[[Run], AbstractContextManager[None]]] = {
    part.__name__: part for part in (mails, payloads, bookings, hooks, shop, circuit, client)
}
