"""WHY: why a message waits, what happened to it, how channels stand and whose turn is next. Nothing is changed."""

from __future__ import annotations

from menzil.ops import values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

_WHY = """
select rank, reason, sentence, since, until, blocked_by, repair
  from menzil.message_why(%s::bigint) order by rank"""

_LIFE = """
select at, what, message_id, attempt, worker, duration_ms, sentence, detail
  from menzil.message_life(%s::bigint)"""

_FAMILY = """
select message_id, parent_id, relation, depth, channel, status, created_at
  from menzil.message_family(%s::bigint)"""

_STATE = """
select channel, is_endpoint, held_by, held_since, held_until, held_actor, in_flight, max_concurrency, rate_used,
       rate_limit, rate_seconds, next_slot_at, waiting, waiting_by_priority, scheduled, oldest_at, blocked_keys, dead,
       workers, at_least
  from menzil.channel_state(%s::text)"""
_STATE_COLUMNS = (
    "channel is_endpoint held_by held_since:time held_until:time held_actor in_flight max_concurrency rate_used "
    "rate_limit rate_seconds next_slot_at:time waiting waiting_by_priority:json scheduled oldest_at:time blocked_keys "
    "dead workers at_least"
)

_TURNS = """
select turn, channel, priority::integer, message_id, ordering_key, due_at
  from menzil.turns(%s::integer)"""


def message_why(message_id: int) -> Op[list[Record]]:
    """menzil.message_why: the reasons, most decisive first."""
    read = records("rank reason sentence since:time until:time blocked_by repair")
    return Op(_WHY, (values.integer("message id", message_id),), read)


def message_life(message_id: int) -> Op[list[Record]]:
    """menzil.message_life: what happened, by time."""
    read = records("at:time what message_id attempt worker duration_ms sentence detail:json")
    return Op(_LIFE, (values.integer("message id", message_id),), read)


def message_family(message_id: int) -> Op[list[Record]]:
    """menzil.message_family: the message, its ancestors (depth below 0) and its descendants (depth above 0)."""
    read = records("message_id parent_id relation depth channel status created_at:time")
    return Op(_FAMILY, (values.integer("message id", message_id),), read)


def channel_state(channel: str | None = None) -> Op[list[Record]]:
    """menzil.channel_state: one channel, or all of them by name."""
    return Op(_STATE, (values.optional_text("channel", channel),), records(_STATE_COLUMNS))


def turns(limit: int = 50) -> Op[list[Record]]:
    """menzil.turns: the next leases over all channels."""
    read = records("turn channel priority message_id ordering_key due_at:time")
    return Op(_TURNS, (values.integer("limit", limit),), read)


def channel_window(channel: str) -> Op[list[Record]]:
    """menzil.channel_window: the leases in the window of a rate limit."""
    text = "select at, messages from menzil.channel_window(%s::text)"
    return Op(text, (values.text("channel", channel),), records("at:time messages"))
