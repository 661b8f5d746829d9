"""One step of an export: the new messages of a month, or the new lines of the event log."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.model.errors import UnknownNameError
from menzil.ops import lake as ops
from menzil.ops import looking_pipeline
from menzil.ops.run import run as ask
from menzil.spark.jobs.export_rows import event_rows, rows
from menzil.spark.lake import layout, schema
from menzil.spark.lake.compare import archived
from menzil.spark.lake.cover import Part, missing, moment
from menzil.spark.lake.errors import LakeBusyError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.load import load
from menzil.spark.lake.manifest import File, Manifest, Slice
from menzil.spark.lake.promote import Promoted, columns_of, promoted
from menzil.spark.lake.publish import finish, now
from menzil.spark.lake.schema import EVENTS, MESSAGES, TABLES
from menzil.spark.lake.storage import Storage
from menzil.spark.lake.write import ready, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Told at each step: its name (read, write, verify, prepare, move, publish, drop, done), the month, and how many rows.
Progress = Callable[[str, str, int], None]


@dataclass
class Exporter:
    """What the steps of one run share."""

    spark: SparkSession
    conn: psycopg.Connection[Any]
    dsn: str
    storage: Storage
    run: str
    until: datetime | None
    tell: Progress
    source: str | None = None
    promotions: list[Promoted] = field(default_factory=list)

    def promote(self, event_types: Sequence[str]) -> None:
        """Take the fields of these event types, and again of those that earlier runs promoted: schemas grow."""
        self.promotions = list(load(self.storage).promoted.values())
        known = {each.event_type for each in self.promotions}
        for name in [*sorted(known), *[name for name in event_types if name not in known]]:
            text = ask(self.conn, ops.event_type_schema(name))
            if text is None and name not in known:
                there = ask(self.conn, looking_pipeline.event_types_named([name]))
                raise UnknownNameError(
                    f"The event type {name!r} has no schema." if there else f"There is no event type named {name!r}.",
                    hint="promote an event type that has one; its fields become columns",
                )
            self.promotions += promoted(name, None if text is None else json.loads(text), self.promotions)

    def month(self, month: str) -> list[File]:
        """Export what is new of a month. Returns the files that were added."""
        parts = self._parts(MESSAGES, month, layout.month_end(month))
        if not parts:
            return []
        self.tell("read", month, 0)
        found = list(zip(parts, archived(self.conn, month, parts), strict=True))
        expected = Fingerprint.total(Fingerprint.of_archive(seen) for _, seen in found)
        if not expected.rows:
            return []
        full = [(part, about) for part, about in found if about.row_count]
        parts_read, seen = [part for part, _ in full], [about for _, about in full]
        frame = rows(self.spark, self.conn, self.dsn, month, parts_read, seen, self.promotions)
        columns = schema.union([columns_of(self.promotions)])
        step = Manifest(
            "export", self.run, month, now(), slice=Slice(self.run, month, tuple(parts), expected), columns=columns,
            promoted=tuple(self.promotions), source=self.source,
        )  # fmt: skip
        return self._do(step, frame, expected)

    def events(self) -> list[File]:
        """Export what is new of the event log. Returns the files that were added."""
        parts = self._parts(EVENTS, EVENTS, None)
        self.tell("read", EVENTS, 0)
        expected = Fingerprint.total(
            Fingerprint.of_events(
                ask(self.conn, ops.event_log_fingerprint(str(p.start), str(p.until), p.created_from, p.created_until))
            )
            for p in parts
        )
        if not expected.rows:
            return []
        part = Slice(self.run, EVENTS, tuple(parts), expected)
        step = Manifest(
            "export", self.run, None, now(), slice=part, columns=dict(TABLES[EVENTS]), table=EVENTS,
            source=self.source,
        )  # fmt: skip
        return self._do(step, event_rows(self.spark, self.dsn, parts, expected), expected)

    def _parts(self, table: str, month: str, end: datetime | None) -> list[Part]:
        """What is not exported yet, of what is settled: no open transaction can add to it."""
        state = load(self.storage)
        if ("export", self.run, month) in state.steps:
            return []
        whole = self.until is None or (end is not None and end <= self.until)
        created_until = None if whole or self.until is None else moment(self.until)
        settled = int(ask(self.conn, ops.settled_before()))
        return missing(state.tables[table].parts(month), settled, created_until)

    def _do(self, step: Manifest, frame: DataFrame, expected: Fingerprint) -> list[File]:
        label = str(step.step[2])
        self.tell("write", label, expected.rows)
        place = layout.work(self.run, label)
        write(self.storage, frame, place, step.table)
        self.tell("verify", label, expected.rows)
        files = ready(self.spark, self.storage, place, step, expected)
        self.tell("prepare", label, expected.rows)
        if not finish(self.storage, place, lambda word: self.tell(word, label, expected.rows)):
            raise LakeBusyError(f"Somebody else exported {label} to the same lake.")
        return files
