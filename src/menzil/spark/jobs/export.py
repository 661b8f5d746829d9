"""export: the archive goes to a lake, month by month, and only what is proved to lie there may leave the database.

Of each month the ends that are new are read (by the ids of their transactions, below the oldest that still runs),
written to files, read back and compared with PostgreSQL, and committed; then the same is done for the event log.
Interrupted anywhere, the next run goes on: what was not committed does not exist.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.model.errors import UsageError
from menzil.ops import lake as ops
from menzil.ops.run import run as ask
from menzil.spark.database import asking, for_driver, session_of
from menzil.spark.jobs.export_drop import drop_month
from menzil.spark.jobs.export_source import must_be_the_same
from menzil.spark.jobs.export_step import TRIES, Exporter, Progress
from menzil.spark.jobs.plainly import of_lake
from menzil.spark.lake import commit, layout
from menzil.spark.lake.catalog import kept
from menzil.spark.lake.errors import LakeBusyError
from menzil.spark.lake.memory import run_property
from menzil.spark.lake.place import address, shown
from menzil.spark.lake.schema import MESSAGES
from menzil.spark.lake.table import Lake, open_for_writing, register
from menzil.spark.parquet.write import Written
from menzil.spark.source.options import demand_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds to wait for another export, which may be one that was killed and whose connection is not closed yet.
PATIENCE = 30.0


@dataclass(frozen=True)
class MonthReport:
    """What became of a month: `rows` new ones; `drop` says whether it left the database, None when it was not to."""

    month: str
    rows: int
    files: int
    size: int
    is_open: bool
    drop: str | None = None


@dataclass(frozen=True)
class ExportReport:
    """What a run did; months with nothing new are not in it, unless they were to be dropped. `events` are new lines.

    `without_column` are fields of event types in `promote` that did not become columns, as EVENT_TYPE.FIELD.
    """

    run_id: str
    lake: str
    months: tuple[MonthReport, ...]
    seconds: float
    events: int = 0
    repeated: bool = False  # this run id was done before, so nothing was exported
    without_column: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Exported by this call."""
        return sum(each.rows for each in self.months)

    @property
    def dropped(self) -> list[str]:
        """Months that left the database."""
        return [each.month for each in self.months if each.drop == "dropped"]


@of_lake
def export(
    spark: SparkSession,
    dsn: str,
    lake: str | os.PathLike[str],
    *,
    until: datetime | None = None,
    drop: bool = False,
    run_id: str | None = None,
    months: Sequence[str] | None = None,
    promote: Sequence[str] = (),
    catalog: str | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Export what is new. Driver; one at a time per lake.

    `until` leaves out what was created at that time or later, `months` ("2026-03") all other months. With `drop` a
    month whose every message lies verified in the lake leaves the database, unless it can still grow, has dead letters
    or goes on after `until`. The fields of event types in `promote` become columns, from now on in every run. A run id
    that is done exports nothing again. `catalog` is one of `.pyiceberg.yaml` instead of that in the database.
    """
    began = time.monotonic()
    if until is not None and until.tzinfo is None:
        raise UsageError("until has no time zone.", hint="use datetime.now(timezone.utc)")
    if isinstance(months, str):
        raise UsageError(f"months is one text, {months!r}.", hint=f"give a list: months=[{months!r}]")
    for month in months or ():
        layout.demand_month(month)
        if layout.month_start(month) > datetime.now(UTC) + timedelta(days=1):  # the database may have another clock
            newest = layout.month_label(datetime.now(UTC))
            raise UsageError(f"{month} has not begun: there is nothing to export.", hint=f"the newest is {newest}")
    if run_id is not None:
        demand_id(run_id, "run id")
    tell = progress or (lambda _step, _month, _rows: None)
    dsn = for_driver(dsn)  # tasks have another environment
    root = address(lake, spark)
    run = run_id or f"export-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    with _alone(dsn, root) as conn, ExitStack() as open_now:
        found, unknown = open_for_writing(lake, dsn, catalog=catalog, spark=spark)
        open_now.enter_context(kept(found.catalog))
        source = must_be_the_same(spark, conn, dsn, found, unknown=unknown)
        if unknown:
            register(found)
        found.make(MESSAGES)  # also where only lines of the event log are exported: by it the catalog knows the lake
        finished = found.memory(MESSAGES).done(run)
        exporter = Exporter(spark, conn, dsn, found, run, until, tell, source)
        exporter.promote(promote)
        reports, moment = [], datetime.now(UTC)
        for each in ask(conn, ops.archive_months()):
            month = layout.month_label(each.starts_at)
            if (months is not None and month not in months) or (until is not None and each.starts_at >= until):
                continue
            report = MonthReport(month, 0, 0, 0, each.is_open)
            if not finished:
                report = _exported(report, exporter.month(month))
            if drop and layout.month_end(month) <= min(until or moment, moment):
                answer = "open" if each.is_open else drop_month(spark, conn, found, month)
                report = replace(report, drop=answer)
                tell("drop", month, report.rows)
            if report.rows or report.drop:
                reports.append(report)
        events = 0 if finished else sum(file.rows for file in exporter.events())
        if not finished:
            exporter.keep_promotions()
        if not finished and run_id is not None:
            _done(found, run)
    tell("done", "", sum(each.rows for each in reports))
    seconds = time.monotonic() - began
    return ExportReport(run, shown(root), tuple(reports), seconds, events, finished, tuple(exporter.plain))


def _done(lake: Lake, run: str) -> None:
    """Remember that this run is over. Each has a property of its own, so two of them do not overwrite each other."""
    for _ in range(TRIES):
        lake.refresh(MESSAGES)
        gone = lake.memory(MESSAGES).old_runs()
        with suppress(*commit.CONFLICT):
            commit.remember(lake, MESSAGES, run_property(run, datetime.now(UTC).isoformat()), gone=gone)
            return
    raise LakeBusyError("Others keep committing to this lake.")


def _exported(report: MonthReport, files: Sequence[Written]) -> MonthReport:
    rows = sum(file.rows for file in files)
    return replace(report, rows=rows, files=len(files), size=sum(file.size for file in files))


@contextmanager
def _alone(dsn: str, root: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection, while the lock of this lake is held."""
    with asking(dsn, "menzil export") as conn, session_of(conn, dsn) as holder:
        deadline, brief = time.monotonic() + PATIENCE, holder is not conn
        while not ask(holder, ops.try_lake_lock(root, brief=brief)):
            if time.monotonic() > deadline:
                raise LakeBusyError("Another export to this lake is at work.")
            time.sleep(0.2)
        yield conn
