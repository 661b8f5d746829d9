"""What an exporter of metrics asks, besides metrics() and channel_state(): totals of the pulse, jobs, readers, plans.

Nothing is changed, and every answer is bounded: some hundred channels, and things that are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from menzil.model.wire import json_loads, read_json
from menzil.ops import op, values
from menzil.ops.op import Op, Rows
from menzil.ops.records import Record, records

# Numbers travel as text and lists as JSON: the runner decodes neither floats nor arrays.
_TOTALS = """
select t.channel, t.sent, t.completed, t.dead, t.expired, t.cancelled, t.deferred, t.recovered, to_jsonb(t.failed),
       to_jsonb(t.ended_ms), to_jsonb(t.try_ms)
  from menzil.pulse_totals(%s::integer, %s::text[]) t"""


class Total(NamedTuple):
    """What passed in one channel, or in all of them together (channel is None), since the pulse began to count."""

    channel: str | None
    sent: int
    completed: int
    dead: int
    expired: int
    cancelled: int
    deferred: int
    recovered: int
    failed: list[int]  # without an HTTP status, then with 1xx to 5xx
    ended_ms: list[int]
    try_ms: list[int]


def totals(limit: int, channels: Sequence[str]) -> Op[list[Total]]:
    """menzil.pulse_totals: these channels, and the busiest ones."""
    names = values.array([values.text("channel", name) for name in channels])
    return Op(_TOTALS, (values.integer("limit", limit), names), _read_totals)


def _read_totals(rows: Rows) -> list[Total]:
    return [Total(*row[:8], *(read_json(counters, json_loads) for counters in row[8:])) for row in rows]


_JOBS = """
select j.name, extract(epoch from j.last_run_at)::bigint, j.last_error is not null from menzil.jobs j order by j.name"""


def jobs() -> Op[list[Record]]:
    """menzil.jobs: when each ran, in seconds since 1970, and whether that round failed."""
    return Op(_JOBS, (), records("name last_run failed"))


_CONSUMERS = """
select c.name, greatest(coalesce(extract(epoch from clock_timestamp() - c.behind_since) * 1000, 0), 0)::bigint
  from menzil.consumers c order by c.name limit 1000"""


def consumers() -> Op[list[Record]]:
    """menzil.consumers: how many milliseconds each is behind."""
    return Op(_CONSUMERS, (), records("name behind_ms"))


_PLANS = """
select p.kind, sum(greatest(coalesce(p.counted, 0) - p.done - p.skipped, 0))::bigint
  from menzil.plans p where p.status in ('running', 'paused') group by 1 order by 1"""


def plans() -> Op[list[Record]]:
    """menzil.plans: how many messages are left, by kind."""
    return Op(_PLANS, (), records("kind remaining"))


_DEAD_ROWS = """
select case when s.relname like 'archive%%' then 'message' else s.relname::text end, sum(s.n_dead_tup)::bigint
  from pg_stat_user_tables s where s.schemaname = 'menzil' and s.n_dead_tup > 0
 group by 1 order by 2 desc, 1 limit %s::integer"""


def dead_rows(limit: int = 20) -> Op[list[Record]]:
    """Dead rows of the tables that have the most; months of the archive count as one table."""
    return Op(_DEAD_ROWS, (values.integer("limit", limit),), records("table rows"))


def schema_version() -> Op[int]:
    """menzil.schema_window: the version that is installed."""
    return Op("select installed from menzil.schema_window()", (), op.integer)
