"""The shop's own worker: a handler whose writes and the end of its message are one transaction.

`menzil worker examples.demo.loyalty:app` runs it, next to all endpoints.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg

from menzil import Message, Worker

app = Worker()


@app.handler("points", transaction=True)
def credit(message: Message, conn: psycopg.Connection[Any]) -> None:
    """Credit points for an order; on its first try a clumsy one fails after it has written, a slow one sits there."""
    order = message.payload
    conn.execute("insert into points (order_id, points) values (%s, %s)", [order["order"], order["total"]])
    if message.attempt == 1 and order.get("clumsy"):
        raise RuntimeError("out of stamps")
    if message.attempt == 1 and order.get("slow"):
        time.sleep(60)
