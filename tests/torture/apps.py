"""The handlers of the real workers: they write down each delivery and end it as the dice of the message say."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import psycopg

import menzil
from tests.torture import effects
from tests.torture.history import Diary
from tests.torture.place import NAME, PLACE, Place
from tests.torture.plan import BOTH, HANDLER

PLACE_ = Place(Path(os.environ[PLACE]))
PLAN = PLACE_.plan()
DIARY = Diary(PLACE_.diaries, os.environ[NAME])

app = menzil.Worker()


def begin(message: menzil.Message) -> Random:
    """Write down that a delivery begins, and throw its dice."""
    DIARY.note("handle.begin", **_facts(message))
    return Random(f"{PLAN.seed}/{message.payload['ref']}/{message.attempt}")


def end(message: menzil.Message, dice: Random, defers: bool = True) -> menzil.Outcome | None:
    """Decide, write it down, and tell the worker."""
    chance = 1.0 if PLACE_.draining else dice.random()
    outcome: menzil.Outcome | None = None
    word = "complete"
    if chance < 0.05:
        word, outcome = "fail", menzil.Fail("no", retry=dice.choice([0.0, 0.3]))
    elif chance < 0.10 and defers:
        word, outcome = "defer", menzil.Defer(seconds=dice.choice([0.0, 0.2]))
    elif chance < 0.12:
        word = "raise"
    elif chance < 0.125:
        word, outcome = "dead", menzil.Fail("never", retry=False)
    DIARY.note("handle.end", **_facts(message), outcome=word)
    if word == "raise":
        raise RuntimeError("as the dice said")
    return outcome


def _facts(message: menzil.Message) -> dict[str, Any]:
    ref, key = message.payload["ref"], message.ordering_key
    return {"id": message.id, "attempt": message.attempt, "ref": ref, "channel": message.channel, "key": key}


def takes(dice: Random) -> float:
    """How long the work takes: mostly nothing, seldom longer than a lease."""
    chance = 1.0 if PLACE_.draining else dice.random()
    return 3.0 if chance < 0.002 else dice.random() * 0.2 if chance < 0.1 else 0.0


async def handle(message: menzil.Message) -> menzil.Outcome | None:
    """In the loop of the worker."""
    dice = begin(message)
    if seconds := takes(dice):
        await asyncio.sleep(seconds)
    return end(message, dice)


def handle_in_a_thread(message: menzil.Message) -> menzil.Outcome | None:
    """The same where nobody can stop it."""
    dice = begin(message)
    if seconds := takes(dice):
        time.sleep(seconds)
    return end(message, dice)


async def book(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> menzil.Outcome | None:
    """Write something in the transaction that ends the message; a defer would commit it, so there is none."""
    dice = begin(message)
    await conn.execute("insert into effect values (%s)", (message.id,))
    if seconds := takes(dice):
        await asyncio.sleep(seconds)
    return end(message, dice, defers=False)


for _name, _channel in PLAN.channels.items():
    if _name == effects.CHANNEL:
        app.handler(_name, transaction=True, concurrency=4)(book)
    elif _channel.serves in (HANDLER, BOTH):
        app.handler(_name)(handle_in_a_thread if _name in ("four", "brief") else handle)
