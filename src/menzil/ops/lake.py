"""What an export asks the database: which months there are, what their fingerprints are, and to let one go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from menzil.model.wire import read_time
from menzil.ops import op, values
from menzil.ops.op import Op, Rows

_FINGERPRINT = """
select row_count, min_id, max_id, min_created_at, max_created_at, hash_sum::text, hash_xor, attempt_count,
       attempt_sum::text, attempt_xor, failed_attempt_count
from menzil.archive_fingerprint(%s::timestamptz, %s::text, %s::text)"""

_DROP = "select menzil.drop_exported_month(%s::timestamptz, %s::bigint, %s::numeric, %s::bigint)"


@dataclass(frozen=True, slots=True)
class ArchiveMonth:
    """A month of the archive; an open one can still grow."""

    starts_at: datetime
    is_open: bool


@dataclass(frozen=True, slots=True)
class ArchiveFingerprint:
    """menzil.archive_fingerprint: messages, and their tries."""

    row_count: int
    min_id: int | None
    max_id: int | None
    min_created_at: datetime | None
    max_created_at: datetime | None
    hash_sum: int
    hash_xor: int
    attempt_count: int
    attempt_sum: int
    attempt_xor: int
    failed_attempt_count: int


def archive_months() -> Op[list[ArchiveMonth]]:
    """menzil.archive_months."""
    return Op("select month, is_open from menzil.archive_months()", (), _read_months)


def archive_fingerprint(month: datetime, start: str | None, until: str | None) -> Op[ArchiveFingerprint]:
    """menzil.archive_fingerprint."""
    params = (month.isoformat(), values.optional_text("first transaction", start), values.optional_text("end", until))
    return Op(_FINGERPRINT, params, _read_fingerprint)


def drop_exported_month(month: datetime, count: int, hash_sum: int, hash_xor: int) -> Op[str]:
    """menzil.drop_exported_month."""
    return Op(_DROP, (month.isoformat(), str(count), str(hash_sum), str(hash_xor)), op.text)


def settled_before() -> Op[str]:
    """The transaction id below which everything is decided: committed and visible, or never to be."""
    return Op("select pg_snapshot_xmin(pg_current_snapshot())::text", (), op.text)


def try_lake_lock(lake: str) -> Op[bool]:
    """Keep other exports to the same lake away for as long as this connection lasts."""
    text = "select pg_try_advisory_lock(hashtextextended('menzil lake ' || %s::text, 0))"
    return Op(text, (values.text("lake", lake),), op.boolean)


def _read_months(rows: Rows) -> list[ArchiveMonth]:
    return [ArchiveMonth(read_time(month), is_open) for month, is_open in rows]


def _read_fingerprint(rows: Rows) -> ArchiveFingerprint:
    count, low, high, first_at, last_at, total, xor, tries, try_sum, try_xor, failed = rows[0]
    times = [None if at is None else read_time(at) for at in (first_at, last_at)]
    return ArchiveFingerprint(
        count, low, high, times[0], times[1], int(total), xor, tries, int(try_sum), try_xor, failed
    )
