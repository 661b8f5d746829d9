"""What the real worker of the crowd runs: each handler says that it was called, one line each."""

from __future__ import annotations

import sys
from typing import Any

import psycopg

import menzil

app = menzil.Worker()


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


@app.handler("handled")
async def handle(message: menzil.Message) -> None:
    _say("handled")


@app.handler("booked", transaction=True)
async def book(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> None:
    """In the transaction that ends its message."""
    await conn.execute("insert into public.mine values (1)")
    _say("booked")
