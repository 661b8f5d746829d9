"""PULSE: what passed, by the minute and channel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from menzil.model.wire import json_loads, read_json, read_time
from menzil.ops import values
from menzil.ops.op import Op, Rows, boolean

#: Upper bounds of the counters of ended_ms and try_ms, in milliseconds; the last counter has none.
BOUNDS_MS = (5, 25, 100, 500, 1000, 5000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000)


@dataclass(frozen=True, slots=True)
class Pulse:
    """One step of one channel, or of all channels together: gauges are None where nothing was measured."""

    at: datetime
    channel: str | None
    waiting: int | None
    in_flight: int | None
    oldest_s: float | None
    sent: int
    completed: int
    failed_tries: int
    dead: int
    deferred: int
    expired: int
    cancelled: int
    ended_ms: list[int]
    try_ms: list[int]


# Lists travel as JSON and floats as text: the runner decodes neither.
_COLUMNS = """at, channel, waiting, in_flight, oldest_s::text, sent, completed, failed_tries, dead, deferred, expired,
  cancelled, to_jsonb(ended_ms), to_jsonb(try_ms)"""
_PULSE_OF = f"select {_COLUMNS} from menzil.pulse_of(%s::text, %s::timestamptz, %s::timestamptz, %s::interval)"
_CHANNELS = f"""
select {_COLUMNS} from menzil.pulse where at >= %s::timestamptz order by at, channel limit %s::integer"""


def pulse_of(
    channel: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    step: timedelta = timedelta(minutes=1),
) -> Op[list[Pulse]]:
    """menzil.pulse_of."""
    params = (
        values.optional_text("channel", channel),
        None if start is None else values.time("start", start),
        None if end is None else values.time("end", end),
        f"{step.total_seconds()} s",
    )
    return Op(_PULSE_OF, params, _read)


def pulse(start: datetime, limit: int = 20_000) -> Op[list[Pulse]]:
    """menzil.pulse: every channel that had any life since then."""
    return Op(_CHANNELS, (values.time("start", start), values.integer("limit", limit)), _read)


def may_know_jobs() -> Op[bool]:
    """Whether this role may read menzil.jobs: menzil_pipeline may not."""
    return Op("select has_table_privilege('menzil.jobs', 'select')", (), boolean)


def counted_at() -> Op[datetime | None]:
    """menzil.jobs: when the pulse was counted last; None where it never was."""
    text = "select j.last_run_at from menzil.jobs j where j.name = 'pulse'"
    return Op(text, (), lambda rows: read_time(rows[0][0]) if rows and rows[0][0] is not None else None)


def _read(rows: Rows) -> list[Pulse]:
    return [_row(*row) for row in rows]


def _row(*row: Any) -> Pulse:
    pulse = dict(zip(Pulse.__dataclass_fields__, row, strict=True))
    pulse["at"] = read_time(pulse["at"])
    if pulse["oldest_s"] is not None:
        pulse["oldest_s"] = float(pulse["oldest_s"])
    for word in ("ended_ms", "try_ms"):
        pulse[word] = [0] * (len(BOUNDS_MS) + 1) if pulse[word] is None else read_json(pulse[word], json_loads)
    return Pulse(**pulse)
