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
from menzil.archive_fingerprint(%s::timestamptz, %s::text, %s::text, %s::timestamptz, %s::timestamptz)"""

_CENSUS = """
select row_count, id_sum::text, min_id, max_id, min_created_at, max_created_at, failed_attempt_count,
       failed_attempt_id_sum::text
from menzil.archive_census(%s::timestamptz, %s::text, %s::text, %s::timestamptz, %s::timestamptz)"""

_EVENTS = """
select row_count, min_id, max_id, min_created_at, max_created_at, hash_sum::text, hash_xor
from menzil.event_log_fingerprint(%s::text, %s::text, %s::timestamptz, %s::timestamptz)"""

_DROP = "select menzil.drop_exported_month(%s::timestamptz, %s::bigint, %s::numeric, %s::bigint)"

_POINTER = """
select t.metadata_location from menzil_lake.iceberg_tables t
 where t.catalog_name = %s::text and t.table_namespace = %s::text and t.table_name = %s::text"""

_POINTER_HELD = _POINTER + " for share"


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


@dataclass(frozen=True, slots=True)
class ArchiveCensus:
    """menzil.archive_census: how many messages, and how many of their tries did not succeed."""

    row_count: int
    id_sum: int
    min_id: int | None
    max_id: int | None
    min_created_at: datetime | None
    max_created_at: datetime | None
    failed_attempt_count: int
    failed_attempt_id_sum: int


@dataclass(frozen=True, slots=True)
class EventFingerprint:
    """menzil.event_log_fingerprint."""

    row_count: int
    min_id: int | None
    max_id: int | None
    min_created_at: datetime | None
    max_created_at: datetime | None
    hash_sum: int
    hash_xor: int


def archive_months() -> Op[list[ArchiveMonth]]:
    """menzil.archive_months."""
    return Op("select month, is_open from menzil.archive_months()", (), _read_months)


def archive_fingerprint(
    month: datetime,
    start: str | None,
    until: str | None,
    created_from: str | None = None,
    created_until: str | None = None,
) -> Op[ArchiveFingerprint]:
    """menzil.archive_fingerprint."""
    params = (month.isoformat(), *_bounds(start, until, created_from, created_until))
    return Op(_FINGERPRINT, params, _read_fingerprint)


def archive_census(
    month: datetime,
    start: str | None,
    until: str | None,
    created_from: str | None = None,
    created_until: str | None = None,
) -> Op[ArchiveCensus]:
    """menzil.archive_census."""
    params = (month.isoformat(), *_bounds(start, until, created_from, created_until))
    return Op(_CENSUS, params, _read_census)


def event_log_fingerprint(
    start: str | None, until: str | None, created_from: str | None = None, created_until: str | None = None
) -> Op[EventFingerprint]:
    """menzil.event_log_fingerprint."""
    return Op(_EVENTS, _bounds(start, until, created_from, created_until), _read_events)


def failed_attempt_bytes(first: int, last: int, since: datetime, around: int, most: int) -> Op[int]:
    """About how much tries that did not succeed are, of messages with these ids: `around` bytes and their texts each.

    Stops at `most` of them.
    """
    text = """
select count(*) * %s::bigint + coalesce(sum(s.length), 0)
  from (select coalesce(octet_length(t.error), 0) + coalesce(octet_length(t.worker), 0) as length
          from menzil.attempts t
         where t.outcome <> 'completed' and t.message_id between %s::bigint and %s::bigint
           and t.ended_at >= %s::timestamptz
         limit %s::bigint) s"""
    return Op(text, (str(around), str(first), str(last), since.isoformat(), str(most)), op.integer)


def event_type_schema(name: str) -> Op[str | None]:
    """The JSON Schema of an event type as text; None when it has none, or there is no such type."""
    text = "select (select t.schema::text from menzil.event_types t where t.name = %s::text)"
    return Op(text, (values.text("event type", name),), _read_optional)


def _bounds(*given: str | None) -> tuple[str | None, ...]:
    names = ("first transaction", "end", "first time of creation", "end of creation")
    return tuple(values.optional_text(name, value) for name, value in zip(names, given, strict=True))


def drop_exported_month(month: datetime, count: int, hash_sum: int, hash_xor: int) -> Op[str]:
    """menzil.drop_exported_month."""
    return Op(_DROP, (month.isoformat(), str(count), str(hash_sum), str(hash_xor)), op.text)


def channel_names(few: int) -> Op[list[str]]:
    """The names of all channels that ever were, when there are more than so many; else none of them."""
    text = """
select c.name from menzil._channel_names c
 where (select count(*) > %s::bigint from menzil._channel_names) group by 1"""
    return Op(text, (str(few),), _read_names)


def _read_names(rows: Rows) -> list[str]:
    return [str(name) for (name,) in rows]


def settled_before() -> Op[str]:
    """The transaction id below which everything is decided, a crash of the server notwithstanding."""
    return Op("select xid from menzil.feed_position('archive')", (), op.text)


_LOCK = "select pg_try_advisory_lock(hashtextextended('menzil lake ' || %s::text, 0))"
_BRIEF_LOCK = _LOCK.replace("advisory_lock", "advisory_xact_lock")


def try_lake_lock(lake: str, *, brief: bool = False) -> Op[bool]:
    """Keep other exports to the same lake away while this connection lasts, or its transaction, which is `brief`."""
    return Op(_BRIEF_LOCK if brief else _LOCK, (values.text("lake", lake),), op.boolean)


def lake_is_free(lake: str) -> Op[bool]:
    """Whether no export to the lake is at work at this moment."""
    return try_lake_lock(lake, brief=True)


def table_pointer(catalog: str, namespace: str, table: str, *, hold: bool = False) -> Op[str | None]:
    """The metadata file of a table of the lake, None when there is no such table.

    With `hold` it does not move before the transaction ends: a commit to the table waits for as long.
    """
    params = (values.text("catalog", catalog), values.text("namespace", namespace), values.text("table", table))
    return Op(_POINTER_HELD if hold else _POINTER, params, _read_first)


def move_pointer(catalog: str, namespace: str, table: str, pointer: str) -> Op[int]:
    """Let a table of the lake be at another metadata file; 0 when there is no such table."""
    text = """
with moved as (
  update menzil_lake.iceberg_tables t
     set metadata_location = %s::text, previous_metadata_location = t.metadata_location
   where t.catalog_name = %s::text and t.table_namespace = %s::text and t.table_name = %s::text
     and t.metadata_location is distinct from %s::text
  returning 1)
select count(*) from moved"""
    return Op(text, (pointer, catalog, namespace, table, pointer), op.integer)


def lake_tables(catalog: str) -> Op[list[tuple[str, str, str]]]:
    """Namespace, name and metadata file of every table of a catalog."""
    text = """
select t.table_namespace, t.table_name, t.metadata_location
  from menzil_lake.iceberg_tables t
 where t.catalog_name = %s::text and t.metadata_location is not null and coalesce(t.iceberg_type, 'TABLE') = 'TABLE'
 order by 1, 2"""
    return Op(text, (values.text("catalog", catalog),), _read_tables)


def _read_first(rows: Rows) -> str | None:
    return None if not rows or rows[0][0] is None else str(rows[0][0])


def _read_tables(rows: Rows) -> list[tuple[str, str, str]]:
    return [(str(namespace), str(name), str(pointer)) for namespace, name, pointer in rows]


def _read_months(rows: Rows) -> list[ArchiveMonth]:
    return [ArchiveMonth(read_time(month), is_open) for month, is_open in rows]


def _read_fingerprint(rows: Rows) -> ArchiveFingerprint:
    count, low, high, first_at, last_at, total, xor, tries, try_sum, try_xor, failed = rows[0]
    times = [None if at is None else read_time(at) for at in (first_at, last_at)]
    return ArchiveFingerprint(
        count, low, high, times[0], times[1], int(total), xor, tries, int(try_sum), try_xor, failed
    )


def _read_census(rows: Rows) -> ArchiveCensus:
    count, ids, low, high, first_at, last_at, failed, failed_ids = rows[0]
    times = [None if at is None else read_time(at) for at in (first_at, last_at)]
    return ArchiveCensus(count, int(ids), low, high, times[0], times[1], failed, int(failed_ids))


def _read_events(rows: Rows) -> EventFingerprint:
    count, low, high, first_at, last_at, total, xor = rows[0]
    times = [None if at is None else read_time(at) for at in (first_at, last_at)]
    return EventFingerprint(count, low, high, times[0], times[1], int(total), xor)


def _read_optional(rows: Rows) -> str | None:
    return None if rows[0][0] is None else str(rows[0][0])
