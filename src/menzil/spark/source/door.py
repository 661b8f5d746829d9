"""What the driver, and tasks of a stream, ask about a send: one short transaction each."""

from __future__ import annotations

from typing import TypeVar

import psycopg

from menzil.ops.dsn import cannot_reach, understood
from menzil.ops.op import Op
from menzil.ops.run import run

T = TypeVar("T")


def ask(dsn: str, op: Op[T]) -> T:
    """Run one Op and commit."""
    try:
        conn = psycopg.connect(understood(dsn), fallback_application_name="menzil spark")
    except psycopg.OperationalError as error:
        raise cannot_reach(error, dsn) from None
    with conn:
        # A commit must see what was committed before it waited for the send, so do not rely on this role's default.
        conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return run(conn, op)
