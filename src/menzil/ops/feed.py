"""The change feed: how far it goes, what was lost from it, how far a reader is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from menzil.model.wire import read_time
from menzil.ops import op, values
from menzil.ops.op import Op, Rows


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a feed is complete, and the latest clean-up of its history."""

    xid: int
    last_drop: int
    foreign_rows: bool


def feed_position(feed: str) -> Op[Position]:
    """menzil.feed_position."""
    text = "select xid, last_drop, foreign_rows from menzil.feed_position(%s::text)"
    return Op(text, (values.text("feed", feed),), _read_position)


def server() -> Op[str]:
    """Which server and database this is. A standby is the same server as its primary, a restored dump is another."""
    text = """
select (pg_control_system()).system_identifier::text || '/' || d.oid
  from pg_database d where d.datname = current_database()"""
    return Op(text, (), op.text)


def timeline() -> Op[int]:
    """How often this server went on from a copy of itself: after a failover, or set back to an earlier time."""
    return Op("select (pg_control_checkpoint()).timeline_id", (), op.integer)


def feed_lost(feed: str, xid: int, row_id: int, last_drop: int) -> Op[datetime | None]:
    """menzil.feed_lost."""
    params = (
        values.text("feed", feed),
        str(xid),
        values.integer("row_id", row_id),
        values.integer("last_drop", last_drop),
    )
    return Op("select menzil.feed_lost(%s::text, %s::text, %s::bigint, %s::bigint)", params, _read_perhaps)


def feed_advance(consumer: str, feed: str, xid: int, row_id: int) -> Op[None]:
    """menzil.feed_advance."""
    params = (
        values.text("consumer", consumer),
        values.text("feed", feed),
        str(xid),
        values.integer("row_id", row_id),
    )
    return Op("select menzil.feed_advance(%s::text, %s::text, %s::text, %s::bigint)", params, op.nothing)


def feed_forget(consumer: str) -> Op[bool]:
    """menzil.feed_forget."""
    return Op("select menzil.feed_forget(%s::text)", (values.text("consumer", consumer),), op.boolean)


def _read_position(rows: Rows) -> Position:
    ((xid, last_drop, foreign_rows),) = rows
    return Position(int(xid), last_drop, foreign_rows)


def _read_perhaps(rows: Rows) -> datetime | None:
    ((at,),) = rows
    return None if at is None else read_time(at)
