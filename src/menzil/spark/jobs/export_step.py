"""The steps of an export: a month of the archive, and the event log. Each ends as one commit, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.model.errors import UnknownNameError, UsageError
from menzil.ops import lake as ops
from menzil.ops import looking_pipeline
from menzil.ops.run import run as ask
from menzil.spark.jobs.export_events import write_events
from menzil.spark.jobs.export_files import fits, write_messages
from menzil.spark.jobs.export_rows import event_rows, rows
from menzil.spark.lake import commit, layout
from menzil.spark.lake.compare import archived, counted, logged
from menzil.spark.lake.cover import Part, missing, moment
from menzil.spark.lake.errors import LakeBusyError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.memory import Slice, cover, promoted_property, source_property
from menzil.spark.lake.promote import Promoted, columns_of, promoted, without_column
from menzil.spark.lake.schema import EVENTS, MANY, MESSAGES, TABLES, with_promoted
from menzil.spark.lake.table import Lake
from menzil.spark.lake.write import must_hold, prove, proved, remove, write
from menzil.spark.parquet.write import Written

if TYPE_CHECKING:
    from pyiceberg.table import Transaction
    from pyspark.sql import SparkSession

#: Told at each step: its name (read, write, verify, commit, publish, drop, done), the month, and how many rows.
Progress = Callable[[str, str, int], None]

#: How often a commit is tried when others commit to the same table meanwhile.
TRIES = 10


@dataclass(frozen=True)
class Step:
    """What is new of a month or of the event log: how it is written for a table as it will be after a transaction, and
    the proof that the files hold it, which is their fingerprint."""

    parts: tuple[Part, ...]
    rows: int
    make: Callable[[Transaction], list[Written]]
    prove: Callable[[Sequence[Written]], Fingerprint]


@dataclass
class Exporter:
    """What the steps of one run share."""

    spark: SparkSession
    conn: psycopg.Connection[Any]
    dsn: str
    lake: Lake
    run: str
    until: datetime | None
    tell: Progress
    source: str | None = None
    promotions: list[Promoted] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)  # fields of event types that were to be promoted and have no column

    def promote(self, event_types: Sequence[str]) -> None:
        """Take the fields of these event types, and again of those that earlier runs promoted: schemas grow."""
        self.promotions = self.lake.memory(MESSAGES).promoted
        known = {each.event_type for each in self.promotions}
        for name in [*sorted(known), *[name for name in event_types if name not in known]]:
            text = ask(self.conn, ops.event_type_schema(name))
            if text is None and name not in known:
                there = ask(self.conn, looking_pipeline.event_types_named([name]))
                raise UnknownNameError(
                    f"The event type {name!r} has no schema." if there else f"There is no event type named {name!r}.",
                    hint="promote an event type that has one; its fields become columns",
                )
            schema = None if text is None else json.loads(text)
            self.promotions += promoted(name, schema, self.promotions)
            if name in event_types:
                self.plain += [f"{name}.{each}" for each in self._plain(name, schema)]

    def _plain(self, name: str, schema: object) -> list[str]:
        """Fields that the caller expects to find and will not. Refuses an event type that has no others."""
        if not any(each.event_type == name for each in self.promotions):
            raise UsageError(
                f"No field of the event type {name!r} can become a column.",
                hint="its schema must name properties, each with one type: string, integer, number or boolean",
            )
        return without_column(name, schema, self.promotions)

    def keep_promotions(self) -> None:
        """Make the columns also where no message was new, so that later runs fill them without being asked."""
        for _ in range(TRIES):
            if self.promotions == self.lake.memory(MESSAGES).promoted:
                return
            with suppress(*commit.CONFLICT):
                about = promoted_property(self.promotions)
                commit.remember(self.lake, MESSAGES, about, columns=columns_of(self.promotions))
                return
            self.lake.refresh(MESSAGES)
        raise LakeBusyError("Others keep committing to this lake.")

    def month(self, month: str) -> list[Written]:
        """Export what is new of a month. Returns the files that were added."""

        def plan(tx: Transaction, channels: list[str]) -> Step | None:
            parts = self._parts(MESSAGES, month, layout.month_end(month))
            if not parts:
                return None
            self.tell("read", month, 0)
            if not self.promotions and fits(self.lake, channels, commit.is_bucketed(tx)):
                return self._straight(month, parts, channels)
            found = list(zip(parts, archived(self.conn, month, parts), strict=True))
            expected = Fingerprint.total(Fingerprint.of_archive(seen) for _, seen in found)
            full = [(part, about) for part, about in found if about.row_count]
            read, seen = [part for part, _ in full], [about for _, about in full]

            def made(tx: Transaction) -> list[Written]:
                frame = rows(self.spark, self.conn, self.dsn, month, read, seen, self.promotions)
                return write(self.lake, MESSAGES, tx, frame, month, channels)

            return self._gathered(MESSAGES, month, parts, expected, made)

        return self._do(MESSAGES, month, plan)

    def events(self) -> list[Written]:
        """Export what is new of the event log. Returns the files that were added."""

        def plan(_tx: Transaction, _channels: list[str]) -> Step | None:
            parts = self._parts(EVENTS, EVENTS, None)
            self.tell("read", EVENTS, 0)
            expected = Fingerprint.total(logged(self.conn, parts))
            if fits(self.lake, [], bucketed=False):
                return self._straight_events(parts, expected)

            def made(tx: Transaction) -> list[Written]:
                return write(self.lake, EVENTS, tx, event_rows(self.spark, self.dsn, parts, expected), None)

            return self._gathered(EVENTS, EVENTS, parts, expected, made)

        return self._do(EVENTS, EVENTS, plan)

    def _straight(self, month: str, parts: Sequence[Part], channels: list[str]) -> Step:
        """Tasks read rows with their hashes, write and read back; the database only counts before."""
        found = list(zip(parts, counted(self.conn, month, parts), strict=True))
        full = [(part, about) for part, about in found if about.row_count]
        read, seen = [part for part, _ in full], [about for _, about in full]

        def made(tx: Transaction) -> list[Written]:
            return write_messages(self.spark, self.dsn, self.lake, tx, month, read, seen, channels)

        count = sum(about.row_count for about in seen)
        return Step(tuple(parts), count, made, lambda written: proved(self.lake, written, seen, month))

    def _straight_events(self, parts: Sequence[Part], expected: Fingerprint) -> Step:
        """Tasks read lines, write and read back; what they found is compared with what the database hashed before."""

        def made(tx: Transaction) -> list[Written]:
            return write_events(self.spark, self.dsn, self.lake, tx, parts, expected)

        def check(written: Sequence[Written]) -> Fingerprint:
            must_hold(self.lake, written, expected, EVENTS)
            return expected

        return Step(tuple(parts), expected.rows, made, check)

    def _gathered(
        self, name: str, label: str, parts: Sequence[Part], expected: Fingerprint, made: Callable[[Any], list[Written]]
    ) -> Step:
        """The database hashes all rows before, and the files are read back in a job of their own."""

        def check(written: Sequence[Written]) -> Fingerprint:
            prove(self.spark, self.lake, name, written, expected, label)
            return expected

        return Step(tuple(parts), expected.rows, made, check)

    def _parts(self, table: str, month: str, end: datetime | None) -> list[Part]:
        """What is not exported yet, of what is settled: no open transaction can add to it."""
        memory = self.lake.memory(table)
        if any(each.run == self.run for each in memory.slices(month)):
            return []
        whole = self.until is None or (end is not None and end <= self.until)
        created_until = None if whole or self.until is None else moment(self.until)
        settled = int(ask(self.conn, ops.settled_before()))
        return missing(memory.parts(month), settled, created_until)

    def _do(self, name: str, label: str, plan: Callable[[Transaction, list[str]], Step | None]) -> list[Written]:
        """Plan, write, prove and commit; again from the plan when another process exported the same meanwhile."""
        for _ in range(TRIES):
            # Most months have nothing new. What an older state of the table lacks nothing of, a newer one has too.
            planned = self.lake.table(name) or self.lake.make(name)
            channels = self._channels() if name == MESSAGES else []
            tx = self._begin(name, channels)
            step = plan(tx, channels)
            if step is None or not step.rows:
                return []
            if self.lake.make(name).metadata_location != planned.metadata_location:
                continue  # what is planned and what is committed to is one state of the table
            written = self._written(name, label, tx, channels, step)
            if written is not None:
                self.tell("publish", label, step.rows)
                return written
        raise LakeBusyError(f"Others keep exporting {label} to the same lake.")

    def _begin(self, name: str, channels: Sequence[str]) -> Transaction:
        columns = with_promoted(TABLES[name], columns_of(self.promotions).items()) if name == MESSAGES else TABLES[name]
        return commit.begin(self.lake.tables[name], columns, many=len(channels) > MANY)

    def _written(
        self, name: str, label: str, tx: Transaction, channels: Sequence[str], step: Step
    ) -> list[Written] | None:
        """None when the files did not fit what another process committed first."""
        shape = commit.schema_of(tx)
        self.tell("write", label, step.rows)
        written = step.make(tx)
        self.tell("verify", label, step.rows)
        new = Slice(self.run, label, step.parts, step.prove(written))
        for _ in range(TRIES):
            self.tell("commit", label, step.rows)
            memory = self.lake.memory(name)
            properties = cover([*memory.slices(label), new]) | source_property(self.source)
            properties |= promoted_property(self.promotions) if name == MESSAGES else {}
            try:
                added = commit.data_files(tx, written, self.lake.root)
                commit.finish(self.lake, name, tx, added, properties, summary={"menzil.run": self.run})
            except commit.CONFLICT:
                # Another process committed. The files are good as long as their rows are still missing.
                self.lake.refresh(name)
                tx = self._begin(name, channels)
                known = self.lake.memory(name).parts(label)
                if any(part.meets(other) for part in step.parts for other in known) or commit.schema_of(tx) != shape:
                    break
            else:
                return written
        remove(self.lake, written)
        return None

    def _channels(self) -> list[str]:
        return ask(self.conn, ops.channel_names(0))
