"""What janitors call: one bounded sweep each, answered with how much it found."""

from __future__ import annotations

from menzil.ops import op, values
from menzil.ops.op import Op


def schedules(limit: int) -> Op[int]:
    """menzil.schedule_fire_due."""
    return Op("select menzil.schedule_fire_due(%s::integer)", _limit(limit), op.integer)


def leftovers(limit: int) -> Op[int]:
    """menzil.archive_completed_messages."""
    return Op("select menzil.archive_completed_messages(p_batch_size => %s::integer)", _limit(limit), op.integer)


def old_archive() -> Op[int]:
    """menzil.cleanup_old_archive_partitions."""
    return Op("select menzil.cleanup_old_archive_partitions()", (), op.integer)


def dead_letters(limit: int) -> Op[int]:
    """menzil.cleanup_dlq."""
    return Op("select menzil.cleanup_dlq(%s::integer)", _limit(limit), op.integer)


def event_log(limit: int) -> Op[int]:
    """menzil.cleanup_event_log."""
    return Op("select menzil.cleanup_event_log(%s::integer)", _limit(limit), op.integer)


def attempts(limit: int) -> Op[int]:
    """menzil.cleanup_attempts."""
    return Op("select menzil.cleanup_attempts(%s::integer)", _limit(limit), op.integer)


def used_keys(limit: int) -> Op[int]:
    """menzil.cleanup_used_keys."""
    return Op("select menzil.cleanup_used_keys(%s::integer)", _limit(limit), op.integer)


def inbox(limit: int) -> Op[int]:
    """menzil.cleanup_inbox."""
    return Op("select menzil.cleanup_inbox(%s::integer)", _limit(limit), op.integer)


def bulk_sends(limit: int) -> Op[int]:
    """menzil.reap_bulk_sends."""
    return Op("select menzil.reap_bulk_sends(p_limit => %s::integer)", _limit(limit), op.integer)


def workers(limit: int) -> Op[int]:
    """menzil.cleanup_workers."""
    return Op("select menzil.cleanup_workers(%s::integer)", _limit(limit), op.integer)


def _limit(limit: int) -> tuple[str]:
    return (values.integer("limit", limit),)
