"""Transactions that other people leave open: an operator at lunch, a report, a consumer in a debugger.

Each holds what it holds for some seconds, and rolls back. Nothing else may wait for it but what has to.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import psycopg

from tests.torture.plan import Plan

Conn = psycopg.Connection[Any]
#: A month that is long past: housekeeping wants to drop it, and must not wait for a reader.
OLD_MONTH = "2020-01-01 00:00:00+00"


def dequeue(conn: Conn, plan: Plan, dice: Random) -> None:
    """A consumer that stands still between its dequeue and its commit."""
    channels = dice.sample(list(plan.channels), min(2, len(plan.channels)))
    conn.execute("select menzil.message_dequeue(60000, %s, %s)", (dice.choice([1, 20]), channels))


def cancel(conn: Conn, plan: Plan, dice: Random) -> None:
    """An operator who has cancelled some messages and thinks it over."""
    rows = conn.execute("select id from menzil.queue where status = 'pending' limit 200").fetchall()
    for (number,) in dice.sample(rows, min(3, len(rows))):
        conn.execute("select menzil.message_cancel(%s)", (number,))


def purge(conn: Conn, plan: Plan, dice: Random) -> None:
    """The same with everything that waits in a channel."""
    conn.execute("select menzil.channel_purge(%s)", (dice.choice(list(plan.channels)),))


def operator(conn: Conn, plan: Plan, dice: Random) -> None:
    """An operator who has paused a channel and not committed it."""
    conn.execute("select menzil.channel_pause(%s)", (dice.choice(list(plan.channels)),))


def loader(conn: Conn, plan: Plan, dice: Random) -> None:
    """A load of thousands of messages that will be rolled back. Their ids are gone, so live messages lie far apart."""
    one = dice.choice(list(plan.channels))
    conn.execute("select menzil.send_batch(%s, array_fill('{}'::jsonb, array[5000]))", (one,))


def reader(conn: Conn, plan: Plan, dice: Random) -> None:
    """A report that has read all messages, while housekeeping wants to drop an old month."""
    conn.execute("rollback")
    conn.execute("select menzil._make_archive_month(%s)", (OLD_MONTH,))
    conn.execute("update menzil.job set next_at = clock_timestamp() + interval '1 s' where name = 'retention'")
    conn.execute("begin isolation level repeatable read")
    conn.execute("select count(*) from menzil.message")


STRANGERS: dict[str, Callable[[Conn, Plan, Random], None]] = {
    act.__name__: act for act in (dequeue, cancel, purge, operator, loader, reader)
}


def enter(conn: Conn, plan: Plan, dice: Random) -> tuple[str, float, Callable[[], None]]:
    """Choose one: its name, for how many seconds it stays, and how it leaves."""
    name = dice.choice(plan.options.get("strangers") or list(STRANGERS))
    try:
        conn.execute("set lock_timeout = '3s'")
        conn.execute("begin")
        STRANGERS[name](conn, plan, dice)
    except psycopg.Error:
        conn.close()
        raise

    return name, 4.5 if name == "reader" else dice.choice([0.5, 1.5, 3.0]), lambda: _leave(conn)


MODES = ("share update exclusive", "share", "share row exclusive", "exclusive", "access exclusive")
ROWS = """select c.relname from pg_class c
 where c.relnamespace = 'menzil'::regnamespace and c.relkind in ('r', 'p') and c.relname !~ '^archive_' order by 1"""


def lock(conn: Conn, dice: Random) -> tuple[str, float, Callable[[], None]]:
    """A lock on a table of the queue in any mode, on all its rows, or advisory locks. Who needs it may wait."""
    try:
        tables = [name for (name,) in conn.execute(ROWS).fetchall()]
        table, way = dice.choice(tables), dice.choice(["table", "rows", "advisory"])
        mode = dice.choice(MODES)
        conn.execute("set lock_timeout = '1s'")
        conn.execute("begin")
        if way == "table":
            conn.execute(f"lock table menzil.{table} in {mode} mode".encode())
        elif way == "rows":
            mode = dice.choice(["for update", "for share", "for key share"])
            conn.execute(f"select count(*) from (select from menzil.{table} {mode} skip locked) r".encode())
        else:
            conn.execute("select pg_advisory_xact_lock(n), pg_advisory_xact_lock(n, n) from generate_series(-9, 99) n")
            conn.execute("select pg_advisory_xact_lock(hashtextextended('k' || n, 0)) from generate_series(1, 60) n")
    except psycopg.Error:
        conn.close()
        raise
    return f"{way} {table} {mode}", dice.choice([0.3, 0.8, 1.5]), lambda: _leave(conn)


def _leave(conn: Conn) -> None:
    with suppress(psycopg.Error):
        conn.execute("rollback")
    conn.close()
