"""Run an Op whose answer is too long to hold: rows come through a cursor of the server, some thousand at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from menzil.ops.loading import read_plainly_from
from menzil.ops.op import Op, Rows

#: Rows of one journey.
CHUNK = 10_000


def stream(conn: psycopg.Connection[Any], op: Op[Rows]) -> Iterator[tuple[Any, ...]]:
    """The rows of the Op, read in one transaction. The connection is busy until the last row was taken."""
    with conn.transaction(), conn.cursor(name="menzil", row_factory=tuple_row) as cursor:
        read_plainly_from(conn, cursor)
        cursor.execute(op.text, op.params, binary=True)
        while rows := cursor.fetchmany(CHUNK):
            yield from rows
