"""What sending rows and fanning events out have in common: their plans, their report, and what becomes of bad rows.

Rows come with `_problem`: why the engine would refuse this one, or NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from menzil.model.errors import InvalidValueError
from menzil.spark.jobs.few import few
from menzil.spark.lake.layout import directory

#: Rows that a plan shows: messages as they would be sent, and refused ones with their reasons.
SAMPLE = 3
REFUSED_SHOWN = 20

#: Letters of a body in them.
LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPlan:
    """What a send would do. `already_sent` is the number of messages that this send id has made before, else None."""

    send_id: str
    messages: int
    refused: int
    endpoints: dict[str, int]
    already_sent: int | None
    sample: list[dict[str, Any]] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    refused_rows: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SendReport:
    """What a send did. A repeat of a send id has made nothing new: `messages` are those of the first time."""

    send_id: str
    messages: int
    refused: int
    repeated: bool
    seconds: float


def reason() -> Column:
    """What is wrong with a row, worded so that rows with the same fault are counted together."""
    return F.regexp_replace("_problem", r"(has|have) \d+ bytes", "$1 too many bytes")


def by_count(counts: Mapping[str, int]) -> dict[str, int]:
    """The most frequent first."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def sample(messages: DataFrame) -> list[dict[str, Any]]:
    """A few messages, for people."""
    return [_shown(row) for row in few(messages.limit(SAMPLE))]


def refused_rows(rows: DataFrame) -> list[dict[str, Any]]:
    """The first of those that would be refused, for people."""
    return [_shown(row) for row in few(rows.where("_problem is not null").limit(REFUSED_SHOWN))]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """What is not there is left out, bodies are cut, bytes are counted."""
    named = {name.removeprefix("_"): value for name, value in row.items() if value is not None}
    return {name: _cut(value) for name, value in named.items()}


def _cut(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes"
    return value[:LONGEST] + "…" if isinstance(value, str) and len(value) > LONGEST else value


def set_aside(rows: DataFrame, plan: BulkPlan, rejects: str | None, all_of_them: str) -> None:
    """Write the rows that the plan found bad below `rejects`, or refuse them all when there is no such place.

    They go to a directory of this send id; what else lies beside it is left alone.
    """
    if not plan.refused:
        return
    if rejects is None:
        worst, number = next(iter(plan.reasons.items()))
        raise InvalidValueError(
            f"{plan.refused:,} of {all_of_them} would be refused, {number:,} of them so: {worst}",
            hint="nothing was sent; correct them, or give a directory for the rejected rows",
        )
    bad = rows.where("_problem is not null").withColumnRenamed("_problem", "problem")
    bad.write.mode("overwrite").json(f"{rejects}/{directory(plan.send_id)}")
