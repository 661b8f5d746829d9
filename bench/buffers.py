"""Pages that a call touches, from EXPLAIN (ANALYZE, BUFFERS): a cost that is the same however busy the machine is."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import psycopg

from bench.payloads import numbers_literal, text

LEASE_MS = 30_000

_EXPLAIN = "explain (analyze, buffers, timing off, summary off, format json) "
# A temporary table is not in shared buffers, so keeping the tokens costs nothing that is counted.
_TAKEN = "create temporary table if not exists taken (id bigint, num_attempts bigint)"
_DEQUEUE = "insert into pg_temp.taken select id, num_attempts from menzil.message_dequeue(%s, %s)"
_SEND = "select menzil.send(%s, %s::jsonb)"
_COMPLETE = "select * from menzil.message_complete(%s::bigint[], %s::bigint[])"


@dataclass(frozen=True)
class Cost:
    """Shared pages per message, each the median over several calls; `worst` is the dearest dequeue."""

    dequeue: float
    complete: float
    worst: float
    send: float  # of one message by itself

    @property
    def total(self) -> float:
        return self.dequeue + self.complete


def shared(conn: psycopg.Connection[Any], statement: str, params: tuple[Any, ...]) -> int:
    """Pages found in or read into shared buffers while this statement runs, nested statements included."""
    row = conn.execute(_EXPLAIN + statement, params).fetchone()
    assert row is not None
    root = row[0][0]["Plan"]
    return int(root["Shared Hit Blocks"] + root["Shared Read Blocks"])


def cost(
    conn: psycopg.Connection[Any], *, calls: int = 25, warm_up: int = 10, size: int = 100, channel: str = "c0"
) -> Cost:
    """What dequeue and complete cost per message in batches of `size`, on a backlog that is already there."""
    conn.execute(_TAKEN)
    dequeues: list[float] = []
    completes: list[float] = []
    for number in range(warm_up + calls):
        conn.execute("truncate pg_temp.taken")
        asked = shared(conn, _DEQUEUE, (LEASE_MS, size))
        tokens = conn.execute("select id, num_attempts from pg_temp.taken").fetchall()
        if not tokens:
            continue  # every limit is used up for the moment
        ids, attempts = zip(*tokens, strict=True)
        settled = shared(conn, _COMPLETE, (numbers_literal(ids), numbers_literal(attempts)))
        if number >= warm_up:
            dequeues.append(asked / len(tokens))
            completes.append(settled / len(tokens))
    if len(dequeues) < calls / 2:
        raise RuntimeError("There was not enough to dequeue.")
    sends = [shared(conn, _SEND, (channel, text(number))) for number in range(warm_up + calls)]
    return Cost(median(dequeues), median(completes), max(dequeues), median(sends[warm_up:]))
