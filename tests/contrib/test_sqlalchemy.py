"""SQLAlchemy: the views as tables, and the outbox on flush, with sync and async sessions of several drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import orm, select, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.ext.mutable import MutableDict
from sqlalchemy.pool import NullPool

import menzil
from menzil.contrib.sqlalchemy import outbox, tables
from menzil.embedded import Embedded
from menzil.model.errors import UnknownNameError, UsageError
from menzil.testing import all_sent
from tests.acceptance.test_orms import url
from tests.conftest import database


class Base(orm.DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "order_of_contrib"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    customer: orm.Mapped[str]
    paid: orm.Mapped[bool] = orm.mapped_column(default=False)
    facts: orm.Mapped[dict[str, Any] | None] = orm.mapped_column(MutableDict.as_mutable(sqlalchemy.JSON()))
    lines: orm.Mapped[list[Line]] = orm.relationship()
    bill: orm.Mapped[Bill | None] = orm.relationship()


class Line(Base):
    __tablename__ = "line_of_contrib"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    order_id: orm.Mapped[int] = orm.mapped_column(sqlalchemy.ForeignKey(Order.id))


class Bill(Base):
    __tablename__ = "bill_of_contrib"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    order_id: orm.Mapped[int] = orm.mapped_column(sqlalchemy.ForeignKey(Order.id))
    order: orm.Mapped[Order] = orm.relationship(overlaps="bill")


@pytest.fixture(scope="module")
def shared(server: Embedded, _installed: str) -> Iterator[str]:
    with database(server, "contrib_sqlalchemy", _installed) as dsn:
        Base.metadata.create_all(engine := sqlalchemy.create_engine(url(dsn), poolclass=NullPool))
        engine.dispose()
        yield dsn


@pytest.fixture
def mq(shared: str) -> Iterator[menzil.Menzil]:
    with menzil.Menzil(shared) as client:
        client.channel_set("orders")
        yield client
        client.channel_purge("orders")


def payloads(dsn: str) -> list[Any]:
    return [sent.payload for sent in all_sent("orders", dsn=dsn, status="pending")]


def test_every_table_has_the_columns_and_types_of_its_view(shared: str) -> None:
    engine = sqlalchemy.create_engine(url(shared), poolclass=NullPool)
    asked = text(
        "select attname, format_type(atttypid, null) from pg_attribute "
        "where attrelid = cast(:view as regclass) and attnum > 0 order by attnum"
    )
    names = {"NUMERIC": "numeric", "DOUBLE PRECISION": "double precision", "INTERVAL": "interval"}
    with engine.connect() as conn:
        for table in tables.metadata.sorted_tables:
            there = [(name, kind) for name, kind in conn.execute(asked, {"view": str(table)})]
            ours = [(column.name, _spelled(column.type, names)) for column in table.columns]
            assert ours == [(name, "text" if kind == "xid8" else kind) for name, kind in there], table.name
            conn.execute(select(table).limit(1)).all()


def _spelled(kind: Any, names: dict[str, str]) -> str:
    written = str(kind.compile(dialect=sqlalchemy.dialects.postgresql.dialect()))
    return names.get(written, written.lower())


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_a_flush_sends_in_the_transaction_of_the_session(mq: menzil.Menzil, shared: str, driver: str) -> None:
    engine = sqlalchemy.create_engine(url(shared, driver), poolclass=NullPool)
    maker = orm.sessionmaker(engine)
    inserted = outbox(
        Order, "orders", payload=lambda o: {"new": o.id}, ordering_key=lambda o: o.customer, sessions=maker
    )
    paid = outbox(Order, "orders", on="update", payload=lambda o: {"paid": o.id}, when=lambda o: o.paid, sessions=maker)
    gone = outbox(Order, "orders", on=("delete",), payload=lambda o: {"gone": o.customer}, sessions=maker)
    with maker() as session:
        session.add(Order(customer="rolled back"))
        session.flush()
        session.rollback()
    assert payloads(shared) == []
    with maker() as session:
        order = Order(customer="ada")
        session.add(order)
        session.commit()
        number = order.id
        order.customer = "bert"  # not paid, no message
        session.commit()
        order.paid = True
        session.commit()
        assert order.paid
        order.paid = True  # no change, no message
        session.commit()
        session.delete(order)
        session.commit()
    with orm.Session(engine) as other, other.begin():
        other.add(Order(customer="of another maker"))
    assert payloads(shared) == [{"new": number}, {"paid": number}, {"gone": "bert"}]
    assert [sent.ordering_key for sent in all_sent("orders", {"new": number}, dsn=shared)] == ["ada"]
    for hook in (inserted, paid, gone):
        hook.remove()
    with maker.begin() as session:
        session.add(Order(customer="after the end"))
    assert len(payloads(shared)) == 3


def test_a_row_that_only_got_rows_of_other_tables_was_not_updated(mq: menzil.Menzil, shared: str) -> None:
    maker = orm.sessionmaker(sqlalchemy.create_engine(url(shared), poolclass=NullPool))
    orders = outbox(Order, "orders", on="update", payload=lambda o: o.customer, sessions=maker)
    bills = outbox(Bill, "orders", on="update", payload=lambda b: f"bill of {b.order_id}", sessions=maker)
    with maker() as session:
        order = Order(customer="ada", facts={})
        other = Order(customer="bert")
        session.add_all([order, other])
        session.commit()
        order.lines.append(Line())
        order.bill = bill = Bill()
        session.commit()
        assert payloads(shared) == []
        order.facts["weight"] = 3
        session.commit()
        bill.order = other  # a column of the bill, and no column of the orders
        session.commit()
        number = other.id
    assert payloads(shared) == ["ada", f"bill of {number}"]
    orders.remove()
    bills.remove()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_an_async_session_sends_too(mq: menzil.Menzil, shared: str, driver: str) -> None:
    hook = outbox(Order, "orders", payload=lambda o: {"new": o.customer})

    async def add() -> None:
        engine = create_async_engine(url(shared, driver), poolclass=NullPool)
        async with AsyncSession(engine) as session, session.begin():
            session.add(Order(customer=driver))

    try:
        asyncio.run(add())
    finally:
        hook.remove()
    assert payloads(shared) == [{"new": driver}]


def test_what_cannot_be_sent_fails_the_flush_and_what_cannot_work_is_refused(mq: menzil.Menzil, shared: str) -> None:
    maker = orm.sessionmaker(sqlalchemy.create_engine(url(shared), poolclass=NullPool))
    hook = outbox(Order, "no such channel", payload=lambda o: {}, sessions=maker)
    with maker() as session:
        session.add(Order(customer="ada"))
        with pytest.raises(UnknownNameError):
            session.flush()
    hook.remove()
    with pytest.raises(UsageError, match="'order_key'"):
        outbox(Order, "orders", payload=lambda o: {}, order_key="x")
    with pytest.raises(UsageError, match="on='upsert'"):
        outbox(Order, "orders", payload=lambda o: {}, on="upsert")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="payload is a dict, not a function"):
        outbox(Order, "orders", payload={"order": 1})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="when is a bool, not a function"):
        outbox(Order, "orders", payload=lambda o: {}, when=True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="maps"):
        outbox(dict, "orders", payload=lambda o: {})
    lite = orm.sessionmaker(sqlalchemy.create_engine("sqlite://"))
    hook = outbox(Order, "orders", payload=lambda o: {}, sessions=lite)
    with lite() as session:
        Base.metadata.create_all(session.connection())
        session.add(Order(customer="ada"))
        with pytest.raises(UsageError, match="sqlite"):
            session.flush()
    hook.remove()
