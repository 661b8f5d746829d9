"""Messages go from PostgreSQL to files, and back from them, in one task: COPY, Arrow, Parquet. Spark divides the work.

PostgreSQL hashes each row in the query that reads it, so that its values are looked up and made texts once. A task sums
these hashes by file, reads each file back when it is done, and hashes what it finds there.

Where a lake has hundreds of channels, columns made of payloads, or lies in an object store, rows go through Spark
instead, which gathers those of a channel from all tasks (export_rows, lake.write).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from menzil.ops.lake import ArchiveCensus
from menzil.spark.jobs.export_attempts import HASH, SUCCESS, SUCCESS_HASH, attempts, failed, proof_of
from menzil.spark.lake import commit, layout
from menzil.spark.lake.cover import Part, moment
from menzil.spark.lake.fingerprint import ROW_FIELDS
from menzil.spark.lake.place import local
from menzil.spark.lake.schema import BUCKETS, COLUMNS, MESSAGES, arrow
from menzil.spark.lake.write import place_of
from menzil.spark.parquet.shares import divided, parallel
from menzil.spark.parquet.sort import BLOCK, Divider
from menzil.spark.parquet.write import Place, Written, line, lines
from menzil.spark.source import partitions
from menzil.spark.source.arrow import opened
from menzil.spark.source.filters import quoted
from menzil.spark.source.partitions import Piece
from menzil.spark.source.relations import RELATIONS, Column
from menzil.spark.source.survey import Survey
from menzil.spark.source.thin import Plan

if TYPE_CHECKING:
    from pyiceberg.table import Transaction
    from pyspark.sql import SparkSession

    from menzil.spark.lake.table import Lake

#: Parts of a table that one task keeps open.
OPEN = 128
#: Rows for which a task of its own is worth it, and rows that each of its files should have at least.
TASK, FILE = 50_000, 100_000
#: Tasks that a small export may have, though their files are smaller than that.
SMALL = 4
#: Bytes of one batch.
BATCH = 2 << 20

#: What a task reads: pieces, the conditions for each, and whether tries of its messages failed.
_Share = Sequence[tuple[Piece, list[str], bool]]


@dataclass(frozen=True)
class _Job:
    """What tasks need. The connection string is in no repr."""

    dsn: str
    since: str
    place: Place
    parts: Mapping[str, int] | None  # of a channel, where their hash parts files
    month: str


def fits(lake: Lake, channels: Sequence[str], bucketed: bool) -> bool:
    """Whether one task can do it: it keeps a file open for each part of the table.

    Not on an object store: what is sent to a task would hold its credentials beside the password of the database.
    """
    return local(lake.root) is not None and (bucketed or len(channels) <= OPEN)


def write_messages(
    spark: SparkSession, dsn: str, lake: Lake, tx: Transaction, month: str, parts: Sequence[Part],
    archive: Sequence[ArchiveCensus], channels: Sequence[str],
) -> list[Written]:  # fmt: skip
    """Write the messages of these parts of a month, of which the database said this. Driver."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    hashed = {name: commit.bucket(name) for name in channels} if commit.is_bucketed(tx) else None
    count = tasks(sum(each.row_count for each in archive), BUCKETS if hashed else len(channels), parallel(spark))
    place = place_of(lake, MESSAGES, month, schema_to_pyarrow(commit.schema_of(tx)))
    job = _Job(dsn, layout.month_start(month).isoformat(), place, hashed, month)
    work = []
    for part, about in zip(parts, archive, strict=True):
        tries = about.failed_attempt_count > 0
        work += [(piece, conditions, tries) for piece, conditions in _pieces(dsn, month, part, count)]
    shares = [work[at::count] for at in range(min(count, len(work)))]
    return lines(bytes(row.line) for row in divided(spark, shares, _task(job), "line binary"))


def tasks(rows: int, keys: int, parallel: int) -> int:
    """How many tasks: each makes a file for every part of the table, and small files are a burden to all readers."""
    return max(1, min(parallel, max(rows // (max(1, keys) * FILE), min(SMALL, rows // TASK))))


def _pieces(dsn: str, month: str, part: Part, count: int) -> Iterator[tuple[Piece, list[str]]]:
    """What to read, and which conditions hold for it."""
    first = max(moment(layout.month_start(month)), part.created_from or "")
    end = min(moment(layout.month_end(month)), part.created_until or "~")
    created = [f"created_at >= '{first}'::timestamptz", f"created_at < '{end}'::timestamptz"]
    # A snapshot in which all below `until` is over and nothing else has begun is the upper bound in other words.
    snapshot = f"{part.until}:{part.until}:"
    with Survey(dsn) as survey:
        if part.start:  # the index of ends leads to what is new
            found = survey.ended(created, part.start, snapshot)
        else:  # that of times does not like to be asked for blocks as well
            found = survey.archive(created, 1 if part.created_from else count)
    for piece in found:
        yield piece, [*created, f"pg_visible_in_snapshot(ended_xid, {quoted(snapshot)}::pg_snapshot)"]


def _task(job: _Job) -> Callable[[_Share], Iterator[pa.RecordBatch]]:
    def run(share: _Share) -> Iterator[pa.RecordBatch]:
        divider = Divider(job.place)
        for piece, conditions, tries in share:
            for rows in _blocks(job, piece, conditions, tries):
                for done in divider.take(rows, _keys(job, rows)):
                    yield line(done)
        for done in divider.end():
            yield line(done)

    return run


def _blocks(job: _Job, piece: Piece, conditions: list[str], tries: bool) -> Iterator[pa.Table]:
    """The rows of a piece as they lie in the lake, some megabytes at a time."""
    relation, kind = RELATIONS["archive"], arrow(COLUMNS).field("attempts").type
    names = [*(name for name in COLUMNS if name != "attempts"), *SUCCESS]
    inner = Plan([(relation.column(name), name) for name in names])
    outer = Plan([(column, column.name) for column in _sent(inner)])
    with ExitStack() as open_now:
        source = open_now.enter_context(opened(job.dsn, BATCH, piece.settings))
        other = open_now.enter_context(opened(job.dsn, BATCH)) if tries else None
        # Where ends and messages are joined all at once, the first rows cost as much as all of them.
        probe = inner.probe(piece.source, piece.condition) if piece.source == partitions.ENDED else None
        empty = [column.name for column in inner.packed(source.one(probe))] if probe else []
        packed = [column for column, _ in outer.columns if column.name in empty]
        query = _hashed(partitions.select(inner.projection([]), piece, conditions), outer.projection(packed))
        for rows in gathered(outer.unpack(source.batches(query, outer.share(packed)), packed)):
            found = failed(other, rows["id"], job.since) if other is not None else None
            proof = proof_of(rows, found)
            whole = rows.append_column("attempts", attempts(rows, found, kind))
            whole = whole.drop_columns([*SUCCESS, HASH, SUCCESS_HASH])
            for name, column in proof.items():
                whole = whole.append_column(name, column)
            yield whole
        if piece.oid is not None:
            source.must_still_have(piece.oid)


def _sent(inner: Plan) -> list[Column]:
    """What the query sends: values that are hashed as texts are texts there."""
    texts = {"jsonb": "text", "uuid": "text", "xid8": "text"}
    return [
        *(Column(column.name, texts.get(column.type, column.type)) for column, _ in inner.columns),
        Column(HASH, "bigint"), Column(SUCCESS_HASH, "bigint"),
    ]  # fmt: skip


def _hashed(query: str, projection: str) -> str:
    """The same rows, each with its hash and that of the try that succeeded. OFFSET: no value is worked out twice."""
    columns = ", ".join(f'"{name}"' for name, _ in ROW_FIELDS[MESSAGES])
    success = "id, num_attempts, 'completed', leased_at, ended_at, worker, null, success_status, success_ms"
    return (
        f'select {projection} from (select r.*, menzil.message_hash({columns}) as "{HASH}", '
        f"case when status = 'completed' then menzil.try_hash({success}) end as \"{SUCCESS_HASH}\" "
        f"from ({query} offset 0) r) h"
    )


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together until they are worth dividing."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= BLOCK:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if any(len(batch) for batch in held):
        yield pa.Table.from_batches(held)


def _keys(job: _Job, rows: pa.Table) -> pa.ChunkedArray:
    """The part of the table of each row, as the committer reads it."""
    coded = rows["channel"].combine_chunks().dictionary_encode()
    coded = coded if isinstance(coded, pa.DictionaryArray) else coded.combine_chunks()
    named = [name if job.parts is None else str(job.parts[name]) for name in coded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array([f"{job.month}/{name}" for name in named]).take(coded.indices)])
