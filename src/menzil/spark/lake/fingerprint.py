"""The fingerprint of messages: what PostgreSQL computes over rows and Spark over files, to be compared.

The text of a row, and why it looks as it does, is in sql/functions/3_verbs/pipeline/archive_fingerprint.sql; neither
may change without the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from menzil.ops.lake import ArchiveCensus, ArchiveFingerprint, EventFingerprint
from menzil.spark.lake.cover import moment
from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.lake.schema import EVENTS, MESSAGES

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyspark.sql import DataFrame, SparkSession

_BIGINT = 1 << 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Fingerprint:
    """Of some messages and their tries. Fingerprints of parts add up to that of the whole."""

    rows: int = 0
    sum: int = 0
    xor: int = 0
    min_id: int | None = None
    max_id: int | None = None
    min_created_at: str | None = None  # as people write it: they read properties
    max_created_at: str | None = None
    attempts: int = 0
    attempts_sum: int = 0
    attempts_xor: int = 0

    def __add__(self, other: Self) -> Self:
        return replace(
            self,
            rows=self.rows + other.rows,
            sum=self.sum + other.sum,
            xor=_signed(self.xor ^ other.xor),
            min_id=_of(min, self.min_id, other.min_id),
            max_id=_of(max, self.max_id, other.max_id),
            min_created_at=_of(min, self.min_created_at, other.min_created_at),
            max_created_at=_of(max, self.max_created_at, other.max_created_at),
            attempts=self.attempts + other.attempts,
            attempts_sum=self.attempts_sum + other.attempts_sum,
            attempts_xor=_signed(self.attempts_xor ^ other.attempts_xor),
        )

    @classmethod
    def total(cls, parts: Iterable[Fingerprint]) -> Fingerprint:
        """Of all of them together."""
        whole = Fingerprint()
        for part in parts:
            whole += part
        return whole

    @classmethod
    def of_archive(cls, found: ArchiveFingerprint) -> Fingerprint:
        """What PostgreSQL said."""
        return Fingerprint(
            found.row_count, found.hash_sum, found.hash_xor, found.min_id, found.max_id,
            _time(found.min_created_at), _time(found.max_created_at),
            found.attempt_count, found.attempt_sum, found.attempt_xor,
        )  # fmt: skip

    @classmethod
    def of_census(cls, found: ArchiveCensus) -> Fingerprint:
        """What PostgreSQL counted: no hash."""
        times = (_time(found.min_created_at), _time(found.max_created_at))
        return Fingerprint(found.row_count, 0, 0, found.min_id, found.max_id, *times)

    @classmethod
    def of_events(cls, found: EventFingerprint) -> Fingerprint:
        """What PostgreSQL said of its event log."""
        return Fingerprint(
            found.row_count, found.hash_sum, found.hash_xor, found.min_id, found.max_id,
            _time(found.min_created_at), _time(found.max_created_at),
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Sums are larger than what a reader of JSON keeps exactly, so hashes are texts."""
        hashes = ("sum", "xor", "attempts_sum", "attempts_xor")
        return {name: str(value) if name in hashes else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Fingerprint:
        """The same back; what a later version added is not ours to compare."""
        hashes = ("sum", "xor", "attempts_sum", "attempts_xor")
        known: dict[str, Any] = {name: given[name] for name in cls.__dataclass_fields__ if name in given}
        return Fingerprint(**known | {name: int(known[name]) for name in hashes if name in known})


def _signed(value: int) -> int:
    return (value + (_BIGINT >> 1)) % _BIGINT - (_BIGINT >> 1)


def _of(choose: Any, one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else choose(one, other)


def _time(at: datetime | None) -> str | None:
    return None if at is None else moment(at)


# Columns in the order of menzil._archive_hash, with how their text is made.
_ROW = """id:number status:text channel:text endpoint_id:number priority:number num_attempts:number retry_count:number
created_at:time scheduled_at:time expires_at:time first_leased_at:time leased_at:time ended_at:time ended_xid:number
worker:text payload:number content:bytes payload_hash:text ordering_key:text idempotency_key:text correlation_id:number
headers:number metadata:number last_error:text state:bytes redrive_of:number replay_of:number response:number"""
_TRY = """attempt:number outcome:text leased_at:time ended_at:time worker:text error:text status_code:number
duration_ms:micros"""
_EVENT = """id:number event_type:text entity_type:text entity_id:text old_value:number new_value:number metadata:number
created_at:time xid:number actor:text via:text"""

_TEXTS = {
    "number": "cast({0} as string)",  # types with one written form
    "text": "concat('=', {0})",
    "bytes": "lower(hex({0}))",
    "time": "lower(lpad(hex(unix_micros({0}) - 946684800000000), 16, '0'))",
    "micros": "cast(cast(floor(greatest(least({0}, 9e14D), -9e14D) * 1000D) as bigint) as string)",
}


def _fields(columns: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, _, kind in (column.partition(":") for column in columns.split())]


#: Name and kind of the columns of each table, and of a try, for tasks that make the same text with Arrow.
ROW_FIELDS = {MESSAGES: _fields(_ROW), EVENTS: _fields(_EVENT)}
TRY_FIELDS = {MESSAGES: _fields(_TRY), EVENTS: []}


def _hash(columns: str, before: str, path: str = "") -> str:
    fields = [before] if before else []
    for column in columns.split():
        name, kind = column.split(":")
        fields.append(f"coalesce({_TEXTS[kind].format(path + name)}, char(30))")
    return (
        f"cast(conv(substr(md5(cast(concat_ws(char(31), {', '.join(fields)}) as binary)), 1, 16), 16, -10) as bigint)"
    )


ROW_HASHES = {MESSAGES: _hash(_ROW, ""), EVENTS: _hash(_EVENT, "")}
#: As menzil 0.1 did it, before the event log said who and by which way.
LEAN_EVENTS = _hash(_EVENT.removesuffix(" actor:text via:text"), "")
TRIES = {
    MESSAGES: f"transform(attempts, t -> {_hash(_TRY, 'cast(id as string)', 't.')})",
    EVENTS: "cast(array() as array<bigint>)",
}

# In UTC, not in the time zone of the session.
MONTH = "date_format(to_utc_timestamp(created_at, current_timezone()), 'yyyy-MM')"

_AGGREGATES = (
    "count(*) as rows",
    "sum(cast(hash as decimal(38,0))) as sum",
    "bit_xor(hash) as xor",
    "min(id) as min_id",
    "max(id) as max_id",
    "unix_micros(min(created_at)) as min_created_at",
    "unix_micros(max(created_at)) as max_created_at",
    "sum(size(tries)) as attempts",
    "sum(aggregate(tries, cast(0 as decimal(38,0)), (s, h) -> cast(s + h as decimal(38,0)))) as attempts_sum",
    "bit_xor(aggregate(tries, 0L, (x, h) -> x ^ h)) as attempts_xor",
)


def of_files(spark: SparkSession, files: FileSystem, paths: Sequence[str], table: str) -> dict[str, Fingerprint]:
    """The fingerprint of each of these files, read whole by tasks. Driver; paths are those of the file system."""
    if not paths:
        return {}
    from menzil.spark.parquet import hash as hashing  # it reads numpy, which most commands do without
    from menzil.spark.parquet.shares import divided, parallel

    work = hashing.task(files, ROW_FIELDS[table], TRY_FIELDS[table])
    # Names are random, so that each task has files of all sizes.
    listed, count = sorted(paths), min(len(paths), parallel(spark))
    found = {}
    for row in divided(spark, [listed[at::count] for at in range(count)], work, hashing.DDL):
        values = row.asDict()
        path, error = values.pop("path"), values.pop("error")
        if error is not None:
            raise LakeDamagedError(f"{path} cannot be read: {error}.")
        found[path] = from_task(values)
    return found


def of_frame(frame: DataFrame, table: str = MESSAGES, row_hash: str | None = None) -> Fingerprint:
    """The fingerprint of rows. Reads all of them; one line comes to the driver."""
    return next(iter(_found(frame, table, "''", row_hash).values()), Fingerprint())


def by_month(frame: DataFrame, table: str = MESSAGES) -> dict[str, Fingerprint]:
    """The same of each month (UTC)."""
    return _found(frame, table, MONTH)


def _found(frame: DataFrame, table: str, label: str, row_hash: str | None = None) -> dict[str, Fingerprint]:
    from pyspark.sql import functions as F

    hashed = frame.select(
        "id",
        "created_at",
        F.expr(label).alias("label"),
        F.expr(row_hash or ROW_HASHES[table]).alias("hash"),
        F.expr(TRIES[table]).alias("tries"),
    )
    fingerprints = {}
    for row in hashed.groupBy("label").agg(*[F.expr(text) for text in _AGGREGATES]).collect():
        values = row.asDict()
        label = values.pop("label")
        fingerprints[label] = from_task(values)
    return fingerprints


def from_task(values: dict[str, Any]) -> Fingerprint:
    """What a task found."""
    numbers = {name: int(values[name]) for name in ("sum", "xor", "attempts", "attempts_sum", "attempts_xor")}
    times = {
        name: None if values[name] is None else _time(_EPOCH + timedelta(microseconds=values[name]))
        for name in ("min_created_at", "max_created_at")
    }
    return Fingerprint(**(values | numbers | times))
