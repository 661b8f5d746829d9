"""SQLAlchemy: every order that a session inserts sends a message, and a query joins orders and messages.

Runs on the database in MENZIL_DSN, or on an embedded PostgreSQL.
"""

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import BigInteger, cast, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import menzil
from menzil.contrib.sqlalchemy import outbox, tables


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "shop_order"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]


with menzil.Menzil() as mq:
    mq.channel_set("billing")
    mq.channel_purge("billing")
    engine = create_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(mq.dsn))
    Base.metadata.create_all(engine)

    outbox(Order, "billing", payload=lambda order: {"order": order.id}, ordering_key=lambda order: order.customer)

    with Session(engine) as session, session.begin():
        session.add_all([Order(customer="ada"), Order(customer="bert")])  # and two messages, in one transaction

    with Session(engine) as session:
        session.add(Order(customer="carl"))
        session.flush()
        session.rollback()  # neither the order nor its message

    sent = tables.queue
    about_order = cast(sent.c.payload["order"].astext, BigInteger) == Order.id
    stand = select(Order.customer, sent.c.status).join(sent, about_order)
    with Session(engine) as session:
        for customer, status in session.execute(stand.order_by(Order.id)):
            print(customer, status)
    engine.dispose()
