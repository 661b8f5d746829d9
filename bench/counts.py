"""What a message costs in things that can be counted, however busy the machine is: bytes of log, rows, pages, disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.turns import Conn

_WAL = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
_ROWS = """
select coalesce(sum(n_tup_ins), 0)::bigint, coalesce(sum(n_tup_upd + n_tup_del), 0)::bigint
from pg_stat_user_tables where schemaname in ('menzil', 'public')"""
_BYTES = """
select c.relname, pg_total_relation_size(c.oid) from pg_class c
where c.relnamespace in ('menzil'::regnamespace, 'public'::regnamespace) and c.relkind = 'r'
  and pg_total_relation_size(c.oid) > 100000 order by 2 desc"""


@dataclass(frozen=True)
class Count:
    """Per message."""

    wal: float  # bytes
    inserted: float  # rows
    dead: float  # row versions that VACUUM has to remove


def wal(conn: Conn) -> int:
    """Where the server's log ends."""
    row = conn.execute(_WAL).fetchone()
    return int(row[0]) if row else 0


def rows(conn: Conn) -> tuple[int, int]:
    """Rows inserted so far, and row versions that died."""
    conn.execute("select pg_stat_force_next_flush()")  # numbers of this session are told at the end of this statement
    row = conn.execute(_ROWS).fetchone()
    return (row[0], row[1]) if row else (0, 0)


def counted(conn: Conn, work: Callable[[], int]) -> Count:
    """What this work writes, for each message that it says it did."""
    inserted, dead = rows(conn)
    before = wal(conn)
    units = work()
    written = wal(conn) - before
    after = rows(conn)
    return Count(written / units, (after[0] - inserted) / units, (after[1] - dead) / units)


def sizes(conn: Conn) -> dict[str, int]:
    """Bytes of tables with their indexes, the largest first; tables of a few pages are left out."""
    return dict(conn.execute(_BYTES).fetchall())
