"""Stream read: the change feed, without gaps and without repeats while others commit in any order.

The place of a row is (transaction id, id). A batch ends before the oldest transaction that is still open, so a row that
commits late lies ahead of every reader; `id > last` would have passed it. What lies before that bound never changes:
a batch that is read again after a crash is the same batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import psycopg
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from menzil.model.errors import RefusedError
from menzil.ops import feed as ops
from menzil.ops.run import run
from menzil.spark.source import places
from menzil.spark.source.arrow import opened
from menzil.spark.source.limits import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from menzil.spark.source.options import FeedOptions
from menzil.spark.source.partitions import window
from menzil.spark.source.places import Offset, Place
from menzil.spark.source.relations import relation
from menzil.spark.source.sentence import sentence_first
from menzil.spark.source.survey import connect, explained, months

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType


@sentence_first
class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """On the driver one per query, in a Python process of its own; a copy goes to each task."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.options = FeedOptions.of(options)
        self.relation = relation(self.options.table)
        self.feed = places.feed(self.relation.name)
        self.projection = self.relation.projection(schema)
        self._target: Place | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """Driver, once in the life of a query: where its checkpoint begins."""
        now = self._complete()
        chosen = self.options.starting
        if chosen == "latest":
            return now.offset()
        if chosen == "earliest":
            return Place(0, 0, now.drop, now.server).offset()
        return replace(places.parse(chosen, now.drop), server=now.server).offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Driver, once per query."""
        return ReadMaxRows(self.options.most) if self.options.most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Driver, once, before the first batch of a run that reads what is there now and stops."""
        self._target = self._complete()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Driver, before each batch: where it ends. The batch before it is done by then, so `start` is reached."""
        begin = Place.of(start)
        with self._connected() as conn:
            now = self._begun(conn, begin)
            if self.options.consumer:
                run(conn, ops.feed_advance(self.options.consumer, self.feed.name, begin.xid, begin.id))
            end = self._target or now
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            found = conn.execute(places.last_of_batch(self.feed, begin, end, most).encode()).fetchone()
        if found is None:
            return start  # nothing new: no empty batch
        return (Place(int(found[0]), found[1], end.drop, end.server) if most and found[2] >= most else end).offset()

    def must_begin_at(self, begin: Place) -> None:
        """Driver: refuse a place of another server, or from which rows were cleaned up."""
        with self._connected() as conn:
            self._begun(conn, begin)

    def _begun(self, conn: psycopg.Connection[Any], begin: Place) -> Place:
        now = self._now(conn)
        _must_be_the_same(begin, now)
        self._check(conn, begin)
        return now

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Driver, for the progress of the query: where it would be without a limit."""
        return self._complete().offset()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Driver, once per batch: cut it into runs of rows, at most so many each."""
        begin, last = Place.of(start), Place.of(end)
        with self._connected() as conn:
            query = places.runs(self.feed, begin, last, self.options.rows_per_task)
            cuts = conn.execute(query.encode()).fetchall()
            known = months(conn) if self.feed.name == "archive" else []
        if not cuts:  # cleaned away meanwhile: the task will say so
            return [InputPartition((begin, last, None))]
        edges = [begin, *(Place(int(xid), row_id, begin.drop) for xid, row_id, *_ in cuts[:-1]), last]
        return [
            InputPartition((one, two, window(known, least, greatest)))
            for (one, two), (*_, least, greatest) in zip(pairwise(edges), cuts, strict=True)
        ]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Task: one run of rows, in the order of the feed. Fails if it was cleaned away meanwhile."""
        begin, last, within = partition.value
        query = places.select(self.feed, self.projection, begin, last, within)
        with opened(self.options.dsn, self.options.batch_bytes, places.SETTINGS) as source:
            yield from source.batches(query)
        if self.options.fail_on_loss:
            with self._connected() as conn:
                self._check(conn, begin)

    def commit(self, end: Offset) -> None:
        """Driver, one batch late and never for the last one: no acknowledgement, so nothing is done here."""

    def stop(self) -> None:
        """Driver, at the end of the query: nothing is held open between calls."""

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        with explained(), connect(self.options.dsn, "menzil spark feed") as conn:
            for name, value in places.SETTINGS.items():
                conn.execute(f"set {name} = {value}".encode())
            yield conn

    def _complete(self) -> Place:
        with self._connected() as conn:
            return self._now(conn)

    def _now(self, conn: psycopg.Connection[Any]) -> Place:
        position = run(conn, ops.feed_position(self.feed.name))
        if position.foreign_rows:
            raise RefusedError(
                "The history holds transaction ids of another server, so the feed has no order.",
                hint="it was restored from a dump; `select menzil.rebuild()` gives these rows ids of this server",
            )
        return Place(position.xid, 0, position.last_drop, run(conn, ops.server()))

    def _check(self, conn: psycopg.Connection[Any], begin: Place) -> None:
        lost = run(conn, ops.feed_lost(self.feed.name, begin.xid, begin.id, begin.drop))
        if lost is not None and self.options.fail_on_loss:
            raise RefusedError(
                f"Rows that this reader had not seen were cleaned up at {lost:%Y-%m-%d %H:%M:%S} UTC.",
                hint='keep history longer than the reader stands still, or set .option("failOnDataLoss", "false")',
            )


def _must_be_the_same(begin: Place, now: Place) -> None:
    """Refuse a checkpoint whose transaction ids another server gave out: rows with lower ids would be left out."""
    if begin.server is not None and begin.server != now.server:
        raise RefusedError(
            "This checkpoint was written while reading another server, or another database.",
            hint="after a restore start with a new checkpoint; after pg_upgrade, which keeps transaction ids, "
            f'with a new checkpoint and startingOffsets {{"xid": {begin.xid}, "id": {begin.id}}}',
        )
    if begin.xid > now.xid:
        raise RefusedError(
            f"This checkpoint is at transaction {begin.xid}, and the server has come to {now.xid}: "
            "it was restored from a dump, or set back in time.",
            hint="start with a new checkpoint",
        )
