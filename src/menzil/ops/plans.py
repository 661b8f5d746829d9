"""Plans: redrives, replays and cancels of many messages, made, run, stopped and looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from menzil.model.errors import InvalidValueError
from menzil.model.wire import json_dumps
from menzil.ops import op, values
from menzil.ops.op import Op, Rows
from menzil.ops.records import Record, record, records

Kind = Literal["redrive", "replay", "cancel"]

#: Status words, in the order of a plan's life.
STATUSES = ("draft", "running", "paused", "stopped", "done")

_CREATE = """
select menzil.plan_create(
  p_kind => %s::text, p_filter => %s::jsonb, p_rate => %s::float8, p_note => %s::text, p_key => %s::text)"""


def plan_create(
    kind: str, where: Mapping[str, Any], rate: float | None = None, note: str | None = None, key: str | None = None
) -> Op[int]:
    """menzil.plan_create: a draft; returns its id. `key` names the form it came from."""
    params = (
        values.text("kind", kind),
        values.payload("filter", dict(where), json_dumps),
        _rate(rate),
        values.optional_text("note", note),
        values.optional_text("key", key),
    )
    return Op(_CREATE, params, op.integer)


def _rate(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidValueError(f"The rate must be a number of messages per second, not {type(value).__name__}.")
    return repr(float(value))


def plan_run(plan_id: int) -> Op[None]:
    """menzil.plan_run."""
    return Op("select menzil.plan_run(%s::bigint)", (_id(plan_id),), op.nothing)


def plan_pause(plan_id: int) -> Op[None]:
    """menzil.plan_pause."""
    return Op("select menzil.plan_pause(%s::bigint)", (_id(plan_id),), op.nothing)


def plan_step(plan_id: int, limit: int = 1000) -> Op[int]:
    """menzil.plan_step: how many messages it made or cancelled."""
    params = (_id(plan_id), values.integer("limit", limit))
    return Op("select menzil.plan_step(%s::bigint, %s::integer)", params, op.integer)


def plan_stop(plan_id: int, take_back: bool = False) -> Op[int]:
    """menzil.plan_stop: how many messages it took back; call it again while that is not 0."""
    params = (_id(plan_id), "true" if take_back else "false")
    return Op("select menzil.plan_stop(%s::bigint, %s::boolean)", params, op.integer)


def plan_of(message_id: int) -> Op[int | None]:
    """menzil.plan_of: the plan that made this message."""
    return Op("select menzil.plan_of(%s::bigint)", (values.integer("message id", message_id),), _optional)


def _optional(rows: Rows) -> int | None:
    return rows[0][0]  # type: ignore[no-any-return]


# Of the numbers only the rate is a float: it travels as text.
_COLUMNS = """
id, kind, filter, rate::text, note, status, actor, via, counted, counted_exactly, done, skipped, taken_back,
created_at, started_at, ended_at, last_due_at, last_error"""
_READ = (
    "id kind filter:json rate note status actor via counted counted_exactly done skipped taken_back "
    "created_at:time started_at:time ended_at:time last_due_at:time last_error"
)
_LIST = f"""
select {_COLUMNS} from menzil.plans
 where id < %s::bigint and (%s::text is null or status = %s::text) order by id desc limit %s::integer"""
_ONE = f"select {_COLUMNS} from menzil.plans where id = %s::bigint"
_WAITING = f"""
select {_COLUMNS} from menzil.plans where status = 'running' and last_error is not null order by id limit %s::integer"""


def plans(*, limit: int = 100, before: int = 2**63 - 1, status: str | None = None) -> Op[list[Record]]:
    """menzil.plans, newest first."""
    word = values.optional_text("status", status)
    params = (values.integer("id", before), word, word, values.integer("limit", limit))
    return Op(_LIST, params, _plans)


def plans_that_wait(limit: int = 100) -> Op[list[Record]]:
    """menzil.plans: those that run and say why they do not go on."""
    return Op(_WAITING, (values.integer("limit", limit),), _plans)


def plan(plan_id: int) -> Op[Record | None]:
    """menzil.plans, one of them."""
    return Op(_ONE, (_id(plan_id),), _plan)


def _plans(rows: Rows) -> list[Record]:
    return [_with_rate(row) for row in records(_READ)(rows)]


def _plan(rows: Rows) -> Record | None:
    found = record(_READ)(rows)
    return None if found is None else _with_rate(found)


def _with_rate(row: Record) -> Record:
    return {**row, "rate": None if row["rate"] is None else float(row["rate"])}


def plan_outcome(plan_id: int) -> Op[dict[str, int]]:
    """menzil.plan_outcome: how many of its messages are where."""
    return Op("select status, messages from menzil.plan_outcome(%s::bigint)", (_id(plan_id),), dict)


_TARGETS = """
select channel, is_endpoint, counted, done, skipped, finished, waits_for, room, to_jsonb(first_ids), last_id
  from menzil.plan_targets(%s::bigint)"""


def plan_targets(plan_id: int) -> Op[list[Record]]:
    """menzil.plan_targets: whom it reaches."""
    columns = "channel is_endpoint counted done skipped finished waits_for room first_ids:json last_id"
    return Op(_TARGETS, (_id(plan_id),), records(columns))


def _id(plan_id: object) -> str:
    return values.integer("id of the plan", plan_id)
