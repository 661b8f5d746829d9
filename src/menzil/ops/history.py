"""What has ended: dead letters that are counted and redriven, archived messages that are replayed."""

from __future__ import annotations

from datetime import datetime

from menzil.model.errors import InvalidValueError
from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

_SUMMARY = """
select endpoint_name, failed_count, redriven_count, oldest_failed_at, newest_failed_at from menzil.dlq_summary()"""

_CAUSES = """
select endpoint_name, error_class, cause, failed_count, oldest_failed_at, newest_failed_at, sample_dlq_id,
  cause_hash
from menzil.dlq_causes(%s::text, %s::integer)"""

_REDRIVE_ENDPOINT = "select menzil.redrive_endpoint(%s::text, %s::text, %s::integer)"

_REPLAY_RANGE = """
select menzil.replay_range(
  %s::bigint, %s::timestamptz, %s::timestamptz, p_status => %s::text, p_dry_run => %s::boolean, p_rate => %s::float8)"""


def redrive_message(dlq_id: int) -> Op[int]:
    """menzil.redrive_message."""
    return Op("select menzil.redrive_message(%s::bigint)", (values.integer("dlq id", dlq_id),), op.integer)


def redrive_take_back(dlq_id: int) -> Op[bool]:
    """menzil.redrive_take_back."""
    return Op("select menzil.redrive_take_back(%s::bigint)", (values.integer("dlq id", dlq_id),), op.boolean)


def redrive_endpoint(name: str, cause: str | None = None, limit: int | None = None) -> Op[int]:
    """menzil.redrive_endpoint."""
    params = (
        values.text("endpoint", name),
        values.optional_text("cause", cause),
        values.optional_integer("limit", limit),
    )
    return Op(_REDRIVE_ENDPOINT, params, op.integer)


def redrive_all() -> Op[int]:
    """menzil.redrive_all."""
    return Op("select menzil.redrive_all()", (), op.integer)


def dlq_summary() -> Op[list[Record]]:
    """menzil.dlq_summary."""
    columns = "endpoint_name failed_count redriven_count oldest_failed_at:time newest_failed_at:time"
    return Op(_SUMMARY, (), records(columns))


def dlq_causes(name: str | None = None, limit: int = 100) -> Op[list[Record]]:
    """menzil.dlq_causes."""
    params = (values.optional_text("endpoint", name), values.integer("limit", limit))
    columns = "endpoint_name error_class cause failed_count oldest_failed_at:time newest_failed_at:time sample_dlq_id"
    columns += " cause_hash"
    return Op(_CAUSES, params, records(columns))


def replay_message(message_id: int) -> Op[int]:
    """menzil.replay_message."""
    return Op("select menzil.replay_message(%s::bigint)", (values.integer("message id", message_id),), op.integer)


def replay_range(
    endpoint_id: int,
    start: datetime,
    end: datetime,
    *,
    status: str | None = None,
    dry_run: bool = False,
    rate: float | None = None,
) -> Op[int]:
    """menzil.replay_range."""
    params = (
        values.integer("endpoint id", endpoint_id),
        values.time("start", start),
        values.time("end", end),
        values.optional_text("status", status),
        "true" if dry_run else "false",
        _rate(rate),
    )
    return Op(_REPLAY_RANGE, params, op.integer)


def cleanup_old_archive_partitions(retention_months: int | None = None) -> Op[int]:
    """menzil.cleanup_old_archive_partitions."""
    params = (values.optional_integer("retention_months", retention_months),)
    return Op("select menzil.cleanup_old_archive_partitions(%s::integer)", params, op.integer)


def _rate(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidValueError(f"The rate must be a number of messages per second, not {type(value).__name__}.")
    return repr(float(value))
