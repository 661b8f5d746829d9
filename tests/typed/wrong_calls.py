"""Calls and hooks that a type checker refuses: each line marked `# wrong` is an error, and no other line is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg

import menzil

app = menzil.Worker()


@dataclass
class Order:
    number: int


def sends(mq: menzil.Menzil, conn: psycopg.AsyncConnection[Any]) -> None:
    mq.send("billing", {}, priorty=3)  # wrong: a misspelled option
    mq.send("billing", {}, priority="high")  # wrong: a priority is a number
    mq.send("billing", {}, delay="5 minutes")  # wrong: a delay is seconds or a timedelta
    mq.send("billing", {}, scheduled_at=timedelta(hours=1))  # wrong: a time is a datetime
    mq.send(42, {})  # wrong: a channel is a name
    mq.send("billing")  # wrong: no payload
    mq.send("billing", {}, conn=conn)  # wrong: an async connection
    mq.send_many([("billing", {})])  # wrong: pairs are not messages
    mq.publish_event("order.placed", {})  # wrong: there is no such function


async def sends_later(mq: menzil.AsyncMenzil, conn: psycopg.Connection[Any]) -> None:
    mq.send("billing", {})  # wrong: not awaited
    number: int = mq.send("billing", {})  # wrong: not awaited
    await mq.cancel(number)
    await mq.send("billing", {}, conn=conn)  # wrong: a connection that is not async
    for message in mq.dequeue():  # wrong: not awaited
        await mq.complete(message)
    with mq:  # wrong: an async client
        pass


async def waits_for_a_sync_client(mq: menzil.Menzil) -> None:
    await mq.send("billing", {})  # wrong: a sync client
    async with mq:  # wrong: a sync client
        pass


def consumes(mq: menzil.Menzil) -> None:
    mq.dequeue(limit=10, channel="billing")  # wrong: the option is channels
    for message in mq.dequeue(limit=10):
        mq.complete(message.id)  # wrong: an id is not a lease
        mq.fail(message)  # wrong: without a reason
        mq.defer(message, delay=datetime.now())  # wrong: a delay is seconds or a timedelta
        print(message.payloads)  # wrong: a misspelled attribute
        message.payload = {}  # wrong: messages do not change
    print(mq.dequeue().payload)  # wrong: a list of messages


def outcomes() -> list[menzil.Outcome]:
    menzil.Defer(minutes=5)  # wrong: there are only seconds
    menzil.Fail()  # wrong: without a reason
    menzil.Fail(404)  # wrong: a reason is a text
    return [menzil.Complete(), "done"]  # wrong: a text is not an outcome


@app.handler("billing", payload=Order)
def misspells(message: menzil.MessageOf[Order]) -> None:
    print(message.payload.nummer)  # wrong: a misspelled field
    number: str = message.payload.number  # wrong: another type
    print(number)


@app.handler("billing")
async def returns_none_of_them(message: menzil.Message) -> menzil.Outcome | None:
    return 200  # wrong: a number is not an outcome


@app.on_error  # wrong: without the error
def reports(message: menzil.Message) -> None: ...


@app.around  # wrong: does not yield
def surrounds(message: menzil.Message) -> None: ...


@app.on_start  # wrong: hooks of the start get nothing
def starts(message: menzil.Message) -> None: ...
