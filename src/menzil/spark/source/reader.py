"""Batch read: PostgreSQL to Arrow to Spark, without a row of Python in between.

A read of the archive is consistent: all tasks, retried ones too, see what was committed when it was planned. In the
other relations each task sees its own moment; no row is read twice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from menzil.spark.source import ends, filters, partitions
from menzil.spark.source.arrow import opened
from menzil.spark.source.options import ReadOptions
from menzil.spark.source.partitions import Piece
from menzil.spark.source.relations import relation
from menzil.spark.source.sentence import sentence_first
from menzil.spark.source.survey import Survey
from menzil.spark.source.thin import Plan

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


@sentence_first
class MenzilReader(DataSourceReader):
    """Made on the driver, in the planner's process; sent to each task by pickle."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.relation = relation(options.table)
        self.plan = Plan(self.relation.asked(schema))
        self.conditions: list[str] = []

    def partitions(self) -> Sequence[InputPartition]:
        """Driver, once per plan: look at the tables and divide the work."""
        with Survey(self.options.dsn) as survey:
            if self.relation.name == "archive":
                snapshot = self.options.snapshot or survey.snapshot()
                if self.options.ended_from is None:
                    pieces = survey.archive(self.conditions, self.options.partitions)
                else:
                    pieces = survey.ended(self.conditions, self.options.ended_from, snapshot)
                if snapshot is not None:
                    self.conditions.append(
                        f"pg_visible_in_snapshot(ended_xid, {filters.quoted(snapshot)}::pg_snapshot)"
                    )
                else:  # ends and messages would be read at two moments
                    pieces = [replace(piece, ends=None) for piece in pieces]
            else:
                pieces = survey.other(self.relation, self.conditions, self.options.partitions)
        return [InputPartition(_Task(piece, list(self.conditions))) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Task, once per partition, on any machine: one connection, batches of bounded size."""
        task: _Task | None = partition.value
        if task is None:  # Spark's stand-in for no partitions at all
            return
        piece = task.piece
        with opened(self.options.dsn, self.options.batch_bytes, piece.settings) as source:
            # A month gives its first rows at once; a view may have to make all of them.
            probe = None if piece.oid is None else self.plan.probe(piece.source, piece.condition)
            packed = self.plan.packed(source.one(probe)) if probe else []
            if ends.shared(self.plan, piece):
                yield from ends.batches(source, self.plan, packed, piece, task.conditions)
            else:
                query = partitions.select(self.plan.projection(packed), piece, task.conditions)
                yield from self.plan.unpack(source.batches(query, self.plan.share(packed)), packed)
            if piece.oid is not None:
                source.must_still_have(piece.oid)


@sentence_first
class PushingReader(MenzilReader):
    """The same, with filters: Spark refuses the method where filter pushdown is switched off."""

    def pushFilters(self, filters_: Sequence[Filter]) -> Iterator[Filter]:  # noqa: N802
        """Driver, once per plan, before partitions(): take what PostgreSQL can check, give back the rest."""
        taken, left = filters.split(filters_, self.relation)
        self.conditions += taken
        return iter(left)


class _Task:
    """What a task is to read; its conditions were known only after the reader was sent out."""

    def __init__(self, piece: Piece, conditions: list[str]) -> None:
        self.piece = piece
        self.conditions = conditions


def reader(options: Mapping[str, str], schema: StructType) -> MenzilReader:
    """The reader for the process we are in. Driver.

    Spark has one planner process for sessions that push filters down and another for all else, and only the first
    accepts a reader with the method. It is known by the module it runs.
    """
    pushing = "pyspark.sql.worker.data_source_pushdown_filters" in sys.modules
    return (PushingReader if pushing else MenzilReader)(ReadOptions.of(options), schema)
