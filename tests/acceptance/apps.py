"""Programs that the tests start as workers. What a handler does goes to the file TRACE, one line each."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

import menzil

TRACE, GATE = Path(os.environ.get("TRACE", "trace")), Path(os.environ.get("GATE", "gate"))

app = menzil.Worker(endpoints=False)


def trace(message: menzil.Message, word: str = "begun") -> None:
    """Write down what happens; one write of a short line is never torn."""
    with TRACE.open("a") as file:
        file.write(f"{word} {message.channel} {message.id} {message.attempt} {os.getpid()}\n")


def die() -> None:
    """End as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)


@app.handler("quick")
async def quick(message: menzil.Message) -> None:
    trace(message)


@app.handler("nothing")
async def nothing(message: menzil.Message) -> None:
    pass


_user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="unset")


@app.handler("contexts")
async def contexts(message: menzil.Message) -> None:
    """Every second message sets a context variable; all trace what they found."""
    trace(message, _user.get())
    if message.id % 2:
        _user.set("set")
        await asyncio.sleep(0)
        trace(message, _user.get())


@app.handler("mixed")
async def mixed(message: menzil.Message) -> menzil.Outcome | None:
    """Done at the first try, or at the second."""
    if message.attempt == 1 and message.payload == "fail":
        return menzil.Fail("again", retry=0)
    if message.attempt == 1 and message.payload == "defer":
        return menzil.Defer()
    return None


_let_through = 0


@app.handler("rationed", concurrency=4)
async def rationed(message: menzil.Message) -> None:
    """Take until the gate, which holds a number, lets one more through; every process counts for itself."""
    global _let_through
    trace(message)
    while _let_through >= int(GATE.read_text() or 0):
        await asyncio.sleep(0.01)
    _let_through += 1


@app.handler("one_by_one", concurrency=1)
async def one_by_one(message: menzil.Message) -> None:
    """Take longer than a round trip."""
    await asyncio.sleep(0.005)
    trace(message)


@app.handler("hold", concurrency=2, lease=2)
async def hold(message: menzil.Message) -> None:
    """Take until the gate opens."""
    trace(message)
    while not GATE.exists():
        await asyncio.sleep(0.01)
    trace(message, "done")


@app.handler("no_use")
async def no_use(message: menzil.Message) -> menzil.Fail:
    """Give up for good when the gate opens."""
    trace(message)
    while not GATE.exists():
        await asyncio.sleep(0.01)
    return menzil.Fail("it is of no use", retry=False)


@app.handler("mute")
async def mute(message: menzil.Message) -> None:
    """Close what the worker writes its lines to, and fail, which is a line."""
    trace(message)
    sys.stderr.close()
    raise ValueError("its line goes nowhere")


@app.handler("deaf")
async def deaf(message: menzil.Message) -> None:
    """Does not let itself be cancelled."""
    trace(message)
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)


@app.handler("lent")
async def lent(message: menzil.Message) -> None:
    """Waits for a thread that never ends."""
    trace(message)
    await asyncio.to_thread(threading.Event().wait)


@app.handler("left")
async def left(message: menzil.Message) -> None:
    """Leaves work to a thread and does not wait for it."""

    def work() -> None:
        while not GATE.exists():
            time.sleep(0.01)
        trace(message, "done")

    asyncio.get_running_loop().run_in_executor(None, work)


@app.handler("stuck", concurrency=2, lease=2)
def stuck(message: menzil.Message) -> None:
    """The same in a thread, where nobody can stop it."""
    trace(message)
    while not GATE.exists():
        time.sleep(0.01)
    trace(message, "done")


# The same under a long lease: a busy machine may stop a worker for as long as a short one lasts.
app.handler("wait", concurrency=2)(hold)
app.handler("together")(hold)
app.handler("endless", concurrency=2)(stuck)


@app.handler("frozen", concurrency=1, lease=1)
async def frozen(message: menzil.Message) -> None:
    """The same without ever letting the worker look at its clock."""
    trace(message)
    while not GATE.exists():
        time.sleep(0.001)


@app.handler("still", concurrency=1)
async def still(message: menzil.Message) -> None:
    """The same under a long lease."""
    trace(message)
    while not GATE.exists():
        time.sleep(0.001)


@app.handler("poison", lease=2)
async def poison(message: menzil.Message) -> None:
    trace(message)
    if message.payload == "poison":
        die()


@app.handler("booking", transaction=True, lease=1)
async def booking(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> None:
    """Write, and die before the end of every third message's first attempt."""
    await conn.execute("insert into effect values (%s)", (message.id,))
    trace(message)
    if message.attempt == 1 and message.id % 3 == 0:
        die()


@app.handler("booking_in_a_thread", transaction=True, lease=1)
def booking_in_a_thread(message: menzil.Message, conn: psycopg.Connection[Any]) -> None:
    conn.execute("insert into effect values (%s)", (message.id,))
    trace(message)
    if message.attempt == 1 and message.id % 3 == 0:
        die()


@app.handler("ledger", transaction=True)
async def ledger(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> None:
    """Write and read what the other messages of this handler write, too."""
    await conn.execute("insert into effect select %s where (select count(*) from effect) >= 0", (message.id,))
    trace(message)


@app.handler("ledger_in_a_thread", transaction=True)
def ledger_in_a_thread(message: menzil.Message, conn: psycopg.Connection[Any]) -> None:
    conn.execute("insert into effect values (%s)", (message.id,))
    trace(message)


@app.handler("letters", lease=1)
def letters(message: menzil.Message) -> None:
    """Do the work once, commit, and die before the worker hears of it."""
    with psycopg.connect(os.environ["MENZIL_DSN"]) as conn:
        if menzil.inbox(conn, message, consumer="letters"):
            conn.execute("insert into effect values (%s)", (message.id,))
    trace(message)
    if message.attempt == 1:
        die()
