"""Runs of the pipeline: begun, ended, listed."""

from __future__ import annotations

from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

_BEGIN = "select menzil.pipeline_run_begin(%s::text, %s::text)"
_END = "select menzil.pipeline_run_end(%s::bigint, %s::bigint, %s::bigint, %s::text, %s::text)"
_LIST = """
select id, kind, lake, started_at, ended_at, rows, files, verdict, error
from menzil.pipeline_runs order by id desc limit %s::integer"""


def begin(kind: str, lake: str | None = None) -> Op[int]:
    """menzil.pipeline_run_begin."""
    return Op(_BEGIN, (values.text("kind", kind), values.optional_text("lake", lake)), op.integer)


def end(
    run: int,
    *,
    rows: int | None = None,
    files: int | None = None,
    verdict: str | None = None,
    error: str | None = None,
) -> Op[None]:
    """menzil.pipeline_run_end."""
    params = (
        values.integer("run", run),
        values.optional_integer("rows", rows),
        values.optional_integer("files", files),
        values.optional_text("verdict", verdict),
        values.optional_text("error", error),
    )
    return Op(_END, params, op.nothing)


def pipeline_runs(limit: int = 50) -> Op[list[Record]]:
    """menzil.pipeline_runs, the newest first."""
    columns = "id kind lake started_at:time ended_at:time rows files verdict error"
    return Op(_LIST, (values.integer("limit", limit),), records(columns))
