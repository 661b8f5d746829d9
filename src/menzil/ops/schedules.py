"""Schedules: messages that repeat."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Unpack

from menzil.model.errors import InvalidValueError, MissingValueError
from menzil.model.options import ScheduleOptions
from menzil.model.wire import Dumps, json_dumps
from menzil.ops import op, values
from menzil.ops.op import Op, Rows
from menzil.ops.records import Record, records
from menzil.ops.sending import json_only

_CREATE = """
select menzil.schedule_create(
  p_name => %s::text, p_cron => %s::text, p_time_zone => %s::text, p_endpoint_name => %s::text, p_payload => %s::jsonb,
  p_priority => %s::integer, p_ordering_key => %s::text, p_expires_after => %s::interval,
  p_headers => %s::jsonb, p_metadata => %s::jsonb)"""

_SLOTS = """
select slot_at, last_at, slots, message_id, status from menzil.schedule_slots(%s::text, %s::integer)"""


def schedule_create(
    name: str,
    cron: str,
    channel: str,
    payload: Any,
    *,
    dumps: Dumps = json_dumps,
    **options: Unpack[ScheduleOptions],
) -> Op[int]:
    """menzil.schedule_create."""
    params = (
        values.text("schedule", name),
        values.text("cron expression", cron),
        values.text("time_zone", options.pop("time_zone", "UTC")),
        values.text("channel", channel),
        values.payload("payload", json_only(payload), dumps),
        values.integer("priority", options.pop("priority", 0)),
        values.optional_text("ordering_key", options.pop("ordering_key", None)),
        values.interval("expires_after", options.pop("expires_after", None)),
        values.optional_json("headers", options.pop("headers", None), dumps),
        values.optional_json("metadata", options.pop("metadata", None), dumps),
    )
    if options:
        raise TypeError(f"a schedule has no option {next(iter(options))!r}")
    return Op(_CREATE, params, op.integer)


def schedule_drop(name: str) -> Op[None]:
    """menzil.schedule_drop."""
    return Op("select menzil.schedule_drop(%s::text)", (values.text("schedule", name),), op.nothing)


def schedule_pause(name: str) -> Op[None]:
    """menzil.schedule_pause."""
    return Op("select menzil.schedule_pause(%s::text)", (values.text("schedule", name),), op.nothing)


def schedule_resume(name: str) -> Op[None]:
    """menzil.schedule_resume."""
    return Op("select menzil.schedule_resume(%s::text)", (values.text("schedule", name),), op.nothing)


def schedule_fire_due(limit: int = 100) -> Op[int]:
    """menzil.schedule_fire_due."""
    return Op("select menzil.schedule_fire_due(%s::integer)", (values.integer("limit", limit),), op.integer)


def cron_next(cron: str, time_zone: str, after: datetime) -> Op[datetime]:
    """menzil.cron_next; what never comes true is refused, as menzil.schedule_create refuses it."""
    if after is None:
        raise MissingValueError("The time after is missing.")

    def read(rows: Rows) -> datetime:
        if rows[0][0] is None:
            sentence = f"The cron expression {cron!r} never comes true."
            raise InvalidValueError(sentence, hint="name a day that exists in that month")
        return op.time(rows)

    params = (
        values.text("cron expression", cron),
        values.text("time_zone", time_zone),
        values.time("time after", after),
    )
    return Op("select menzil.cron_next(%s::text, %s::text, %s::timestamptz)", params, read)


def schedule_slots(name: str, limit: int = 10) -> Op[list[Record]]:
    """menzil.schedule_slots."""
    params = (values.text("schedule", name), values.integer("limit", limit))
    return Op(_SLOTS, params, records("slot_at:time last_at:time slots message_id status"))
