"""What a task of an export does: COPY, Arrow, Parquet, and back from the file.

Runs in Python processes of Spark, each of which imports this module and what it needs. Without the rest of the lake,
whose catalog reads pyiceberg, SQLAlchemy and pandas, that takes 0.3 s of processor time instead of 1.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from menzil.spark.jobs.export_attempts import HASH, SUCCESS, SUCCESS_HASH, attempts, failed, proof_of
from menzil.spark.parquet.sort import BLOCK, Divider
from menzil.spark.parquet.write import Place, line
from menzil.spark.source import partitions
from menzil.spark.source.arrow import opened
from menzil.spark.source.partitions import Piece
from menzil.spark.source.relations import RELATIONS, Column
from menzil.spark.source.thin import Plan

#: Bytes of one batch.
BATCH = 2 << 20
EVENT_LOG = "event_log"

#: What a task reads: pieces, the conditions for each, and whether tries of its messages failed.
Share = Sequence[tuple[Piece, list[str], bool]]


@dataclass(frozen=True)
class Job:
    """What tasks need. The connection string is in no repr."""

    dsn: str = field(repr=False)
    since: str
    place: Place
    columns: tuple[str, ...]  # of a message, without its tries
    kind: pa.DataType  # of the column of tries, as it lies in the lake
    parts: Mapping[str, int] | None  # of a channel, where their hash parts files
    month: str


def messages(job: Job) -> Callable[[Share], Iterator[pa.RecordBatch]]:
    """A task that writes messages of a month to files, and reads each back."""

    def run(share: Share) -> Iterator[pa.RecordBatch]:
        divider = Divider(job.place)
        for piece, conditions, tries in share:
            for rows in _blocks(job, piece, conditions, tries):
                for done in divider.take(rows, _keys(job, rows)):
                    yield line(done)
        for done in divider.end():
            yield line(done)

    return run


def _blocks(job: Job, piece: Piece, conditions: list[str], tries: bool) -> Iterator[pa.Table]:
    """The rows of a piece as they lie in the lake, some megabytes at a time."""
    relation = RELATIONS["archive"]
    inner = Plan([(relation.column(name), name) for name in (*job.columns, *SUCCESS)])
    outer = Plan([(column, column.name) for column in _sent(inner)])
    with ExitStack() as open_now:
        source = open_now.enter_context(opened(job.dsn, BATCH, piece.settings))
        other = open_now.enter_context(opened(job.dsn, BATCH)) if tries else None
        # Where ends and messages are joined all at once, the first rows cost as much as all of them.
        probe = inner.probe(piece.source, piece.condition) if piece.source == partitions.ENDED else None
        empty = [column.name for column in inner.packed(source.one(probe))] if probe else []
        packed = [column for column, _ in outer.columns if column.name in empty]
        query = _hashed(job, partitions.select(inner.projection([]), piece, conditions), outer.projection(packed))
        for rows in _gathered(outer.unpack(source.batches(query, outer.share(packed)), packed)):
            found = failed(other, rows["id"], job.since) if other is not None else None
            proof = proof_of(rows, found)
            whole = rows.append_column("attempts", attempts(rows, found, job.kind))
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


def _hashed(job: Job, query: str, projection: str) -> str:
    """The same rows, each with its hash and that of the try that succeeded. OFFSET: no value is worked out twice."""
    columns = ", ".join(f'"{name}"' for name, _ in job.place.hashed[0])
    success = "id, num_attempts, 'completed', leased_at, ended_at, worker, null, success_status, success_ms"
    return (
        f'select {projection} from (select r.*, menzil.message_hash({columns}) as "{HASH}", '
        f"case when status = 'completed' then menzil.try_hash({success}) end as \"{SUCCESS_HASH}\" "
        f"from ({query} offset 0) r) h"
    )


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
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


def _keys(job: Job, rows: pa.Table) -> pa.ChunkedArray:
    """The part of the table of each row, as the committer reads it."""
    coded = rows["channel"].combine_chunks().dictionary_encode()
    coded = coded if isinstance(coded, pa.DictionaryArray) else coded.combine_chunks()
    named = [name if job.parts is None else str(job.parts[name]) for name in coded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array([f"{job.month}/{name}" for name in named]).take(coded.indices)])


def events(dsn: str, place: Place, conditions: Sequence[str]) -> Callable[[Piece], Iterator[pa.RecordBatch]]:
    """A task that does the same with lines of the event log."""
    columns = RELATIONS[EVENT_LOG].columns
    projection = Plan([(column, column.name) for column in columns]).projection([])

    def run(piece: Piece) -> Iterator[pa.RecordBatch]:
        divider = Divider(place)
        with opened(dsn, BATCH) as source:
            for rows in _gathered(source.batches(partitions.select(projection, piece, conditions))):
                for done in divider.take(rows, _months(rows)):
                    yield line(done)
        for done in divider.end():
            yield line(done)

    return run


def _months(rows: pa.Table) -> pa.ChunkedArray:
    """The month of each line (UTC), as the committer reads it."""
    at = rows["created_at"].cast(pa.timestamp("us"))  # without a zone: Arrow asks no database of time zones
    months: pa.ChunkedArray = pc.strftime(at, "%Y-%m")
    return months
