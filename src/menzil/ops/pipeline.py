"""Sends of many rows: opened, filled by tasks through COPY, committed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from menzil.ops import op, values
from menzil.ops.op import Op, Rows

_OPEN = "select state, staging from menzil.bulk_open(%s::text, %s::text)"
_COMMIT = "select row_count, created_count from menzil.bulk_commit(%s::text, %s::text[], %s::bigint[])"
_STATUS = "select state, row_count, created_count from menzil.bulk_sends where send_id = %s::text"


@dataclass(frozen=True, slots=True)
class BulkOpened:
    """An open send has a staging table; one that is done has none."""

    state: str
    staging: str | None


@dataclass(frozen=True, slots=True)
class BulkDone:
    """Rows that were sent, and messages they made: fewer, when idempotency keys were used before."""

    row_count: int
    created_count: int


@dataclass(frozen=True, slots=True)
class BulkStatus:
    """How a send stands; the counts are None until it is done."""

    state: str
    row_count: int | None
    created_count: int | None


def bulk_open(send_id: str, what: str | None = None) -> Op[BulkOpened]:
    """menzil.bulk_open."""
    params = (values.text("send id", send_id), values.optional_text("what", what))
    return Op(_OPEN, params, lambda rows: BulkOpened(*rows[0]))


def bulk_commit(send_id: str, tokens: Sequence[str], counts: Sequence[int]) -> Op[BulkDone]:
    """menzil.bulk_commit."""
    params = (values.text("send id", send_id), values.array(tokens), values.numbers(map(str, counts)))
    return Op(_COMMIT, params, lambda rows: BulkDone(*rows[0]))


def bulk_abort(send_id: str) -> Op[bool]:
    """menzil.bulk_abort."""
    return Op("select menzil.bulk_abort(%s::text)", (values.text("send id", send_id),), op.boolean)


def bulk_status(send_id: str) -> Op[BulkStatus | None]:
    """One send of menzil.bulk_sends, or None when it was never opened, or aborted."""
    return Op(_STATUS, (values.text("send id", send_id),), _read_status)


def _read_status(rows: Rows) -> BulkStatus | None:
    return BulkStatus(*rows[0]) if rows else None
