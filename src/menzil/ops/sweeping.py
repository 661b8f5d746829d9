"""Housekeeping by hand: one bounded sweep each, answered with how much it found."""

from __future__ import annotations

from menzil.ops import op, values
from menzil.ops.op import Op


def dead_letters(limit: int) -> Op[int]:
    """menzil.cleanup_dlq."""
    return Op("select menzil.cleanup_dlq(%s::integer)", _limit(limit), op.integer)


def event_log(limit: int) -> Op[int]:
    """menzil.cleanup_event_log."""
    return Op("select menzil.cleanup_event_log(%s::integer)", _limit(limit), op.integer)


def attempts(limit: int) -> Op[int]:
    """menzil.cleanup_attempts."""
    return Op("select menzil.cleanup_attempts(%s::integer)", _limit(limit), op.integer)


def _limit(limit: int) -> tuple[str]:
    return (values.integer("limit", limit),)
