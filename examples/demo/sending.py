"""Scenes about sending: a message is a row of your own transaction."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from examples.demo.stage import Stage, milliseconds
from menzil import IdempotencyConflictError


def transaction(stage: Stage) -> None:
    """An order and its message are committed together, or not at all; the same order again is the same message."""
    stage.title("A message is part of your transaction")
    stage.mq.channel_set("billing")
    with stage.connect() as conn:
        conn.execute("create table orders (id int primary key, customer text, billed int not null default 0)")
    with stage.connect() as conn:
        first = _order(stage, conn, 1, "ada")
        stage.check(stage.mq.dequeue() == [], "what is not committed is not delivered")
    stage.say(f"insert into orders …; send; commit      → message {first}, ordering key ada, idempotency key order-1")
    stage.book.sent("billing", first)
    with stage.connect() as conn:
        lost = _order(stage, conn, 2, "ada")
        conn.rollback()
    seen = stage.ask("select (select count(*) from orders), (select count(*) from menzil.queue)")
    stage.say(f"insert into orders …; send; rollback    → message {lost} never was; orders, messages: {seen[0]}")
    stage.check(seen == [(1, 1)], "a rolled back transaction sends nothing")
    again = stage.mq.send("billing", {"order": 1}, ordering_key="ada", idempotency_key="order-1")
    stage.say(f"the same send again, key order-1        → message {again}, no second one")
    stage.check(again == first, "an idempotency key answers with the first message")
    said = stage.refused(
        lambda: stage.mq.send("billing", {"order": 9}, idempotency_key="order-1"), IdempotencyConflictError
    )
    stage.say(f"another payload under that key          → refused: {said}")


def crossing(stage: Stage) -> None:
    """Two open transactions send to the same two channels in opposite order; neither waits for the other."""
    stage.title("Two open transactions, crossing, do not block each other")
    mq = stage.mq
    mq.channel_set("parcels")
    mq.dequeue(10, channels="parcels")  # the first call of a session plans its statements; we time the next one
    with stage.connect() as one, stage.connect() as two:
        for conn in (one, two):  # one that has to wait fails at once, and the demo with it
            conn.execute("set lock_timeout = '1s'")
            conn.commit()
        began = time.monotonic()
        sent = [("billing", mq.send("billing", {"order": 3}, conn=one))]
        sent += [("parcels", mq.send("parcels", {"order": 4}, conn=two))]
        sent += [("parcels", mq.send("parcels", {"order": 3}, conn=one))]
        sent += [("billing", mq.send("billing", {"order": 4}, conn=two))]
        stage.say(f"four sends in two open transactions: {milliseconds(began)}, neither waited")
        began = time.monotonic()
        taken = mq.dequeue(10, channels="parcels")
        stage.say(f"a consumer meanwhile: {len(taken)} parcels, after {milliseconds(began)}")
        stage.check(taken == [], "what is not committed is not delivered")
        two.commit()
        one.commit()
    stage.say(
        f"the second commits first; messages {', '.join(str(message_id) for _, message_id in sent)} are in the queue"
    )
    for channel, message_id in sent:
        stage.book.sent(channel, message_id)
    parcels = stage.until(lambda: mq.dequeue(10, channels="parcels"), "both parcels arrive")
    stage.check(len(parcels) == 2, "both parcels arrive")
    mq.complete_many(parcels)


def ordering(stage: Stage) -> None:
    """One message per ordering key is in flight; work and settle are one transaction."""
    stage.title("An ordering key keeps its messages in order, one at a time")
    mq, book = stage.mq, stage.book
    with stage.connect() as conn:
        ids = [_order(stage, conn, number, customer) for number, customer in ((5, "ada"), (6, "bob"), (7, "ada"))]
    book.sent("billing", *ids)
    stage.say(f"orders 5 and 7 of ada, 6 of bob: messages {ids[0]}, {ids[2]} and {ids[1]}; order 1 of ada still waits")
    for _ in range(3):
        batch = stage.until(lambda: mq.dequeue(10, channels="billing"), "there is something to bill")
        keys = [message.ordering_key for message in batch if message.ordering_key]
        told = ", ".join(f"order {message.payload['order']} ({message.ordering_key or 'no key'})" for message in batch)
        stage.say(f"a batch of up to ten: {told}")
        stage.check(len(keys) == len(set(keys)), "a key has one message in flight")
        with stage.connect() as conn:  # the work and its end are committed together
            for message in batch:
                conn.execute("update orders set billed = billed + 1 where id = %s", [message.payload["order"]])
                mq.complete(message, conn=conn)
    billed = stage.ask("select id, billed from orders order by id")
    stage.check(billed == [(1, 1), (5, 1), (6, 1), (7, 1)], "every order is billed once")
    stage.say("each was billed and completed in one transaction: every order billed exactly once")


def _order(stage: Stage, conn: psycopg.Connection[Any], number: int, customer: str) -> int:
    conn.execute("insert into orders (id, customer) values (%s, %s)", [number, customer])
    return stage.mq.send(
        "billing", {"order": number}, ordering_key=customer, idempotency_key=f"order-{number}", conn=conn
    )
