"""A report without Spark: the history is read and counted in this process, from a database or a small lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from menzil.cli.database import Database
from menzil.model.errors import PermissionDeniedError
from menzil.ops import history, looking_report
from menzil.ops.stream import stream
from menzil.report.figures import Figures, Slo, period
from menzil.report.incidents import CLOSED, OPENED, Turn
from menzil.report.tally import Ended, Span, moment, tally

#: Messages up to which one process counts, which takes it a quarter of a minute at most. Above it, Spark.
MOST = 500_000

#: Columns of a file of the lake, in the order of Ended.
_COLUMNS = ["id", "channel", "status", "created_at", "scheduled_at", "first_leased_at", "ended_at", "num_attempts",
            "last_error"]  # fmt: skip
_CAUSES = 10_000


class TooLargeError(Exception):
    """There are more messages than one process should count."""


def small_report(
    lake: str | None, db: Database | None, *, slo: Slo, start: datetime | None, end: datetime | None, now: datetime
) -> Figures:
    """The figures of a lake, a database or both; TooLargeError when that is work for Spark."""
    earlier = period(start, end, now)
    kept = None if lake is None else _Lake(lake)
    names = [name for name, given in (("the lake", kept), ("the live database", db)) if given is not None]
    since = earlier[0] if earlier else start
    span = Span(0, 0, 0)
    if db is not None:
        span = Span(*db.run(looking_report.ended_span(since, end, MOST + 1)))
        if span.messages > MOST:
            raise TooLargeError
        if since != start:
            span = Span(*db.run(looking_report.ended_span(start, end, MOST + 1)))
    seen: set[tuple[int, int]] = set()  # a database that was set back gives an id out again
    if kept is not None:
        if kept.rows(since, end) > MOST:
            raise TooLargeError
        span = _together(span, kept.span(start, end))
        seen = kept.ids if db is not None else set()

    def messages(first: datetime | None, last: datetime | None) -> Iterator[Ended]:
        if kept is not None:
            yield from kept.messages(first, last)
        if db is not None:
            rows = (Ended(*row) for row in stream(db.conn, looking_report.ended(first, last)))
            yield from (row for row in rows if (row.id, row.created_at) not in seen) if seen else rows

    return tally(
        messages(start, end),
        span,
        source=" and ".join(names) + (f" {Path(lake).name}" if lake and db is None else ""),
        slo=slo,
        turns=_turns(kept, db),
        before=None if earlier is None else messages(*earlier),
        redrivable=None if db is None else redrivable(db),
    )


def redrivable(db: Database) -> dict[str, int] | None:
    """How many dead letters of each cause the database can still redrive; None when this role may not ask."""
    with suppress(PermissionDeniedError):
        found: Counter[str] = Counter()
        for row in db.run(history.dlq_causes(None, _CAUSES)):
            found[row["cause"]] += row["failed_count"]
        return dict(found)
    return None


def _turns(kept: _Lake | None, db: Database | None) -> list[Turn] | None:
    told = None if kept is None else kept.turns()
    if db is None:
        return told
    live = [Turn(row["id"], row["channel"], row["event_type"], row["created_at"])
            for row in db.run(looking_report.events_named([OPENED, *CLOSED]))]  # fmt: skip
    known = {(turn.id, turn.created_at) for turn in told or ()}
    return [*(told or ()), *(turn for turn in live if (turn.id, turn.created_at) not in known)]


def _together(one: Span, other: Span) -> Span:
    there = [span for span in (one, other) if span.messages]
    if not there:
        return one
    first, newest = min(span.first_at for span in there), max(span.newest_at for span in there)
    return Span(sum(span.messages for span in there), first, newest)


class _Lake:
    """The files of a lake, read by Arrow."""

    def __init__(self, place: str) -> None:
        from menzil.spark.lake.errors import in_words
        from menzil.spark.lake.place import file_system
        from menzil.spark.lake.read import data_files, month_of
        from menzil.spark.lake.schema import EVENTS, MESSAGES
        from menzil.spark.lake.table import open_lake

        with in_words():
            lake = open_lake(place)
            self._system = file_system(lake.root, lake.options)
            self._files = [(month_of(file), file.file_path, file.record_count) for file in data_files(lake, MESSAGES)]
            told = bool(lake.memory(EVENTS).labels)
            self._events = [file.file_path for file in data_files(lake, EVENTS)] if told else None

    def rows(self, start: datetime | None, end: datetime | None) -> int:
        """How many messages lie in files that may have some of this range."""
        return sum(count for _, count in self._chosen(start, end))

    def _chosen(self, start: datetime | None, end: datetime | None) -> list[tuple[str, int]]:
        """Files of months (UTC) that this range meets."""
        first = f"{start.astimezone(UTC):%Y-%m}" if start else ""
        last = f"{end.astimezone(UTC):%Y-%m}" if end else "~"  # after every digit
        return [(path, count) for month, path, count in self._files if first <= month <= last]

    @property
    def ids(self) -> set[tuple[int, int]]:
        """All messages: the id and the time of creation."""
        found: set[tuple[int, int]] = set()
        for batch in self._read([path for _, path, _ in self._files], ["id", "created_at"]):
            found.update(zip(*batch, strict=True))
        return found

    def span(self, start: datetime | None, end: datetime | None) -> Span:
        """How many messages there are of this range, and when the first and the newest were created."""
        times = [message.created_at for message in self.messages(start, end)]
        return Span(len(times), min(times), max(times)) if times else Span(0, 0, 0)

    def messages(self, start: datetime | None, end: datetime | None) -> Iterator[Ended]:
        """The messages that were created in this range."""
        first = _micros(start) if start else None
        last = _micros(end) if end else None
        for batch in self._read([path for path, _ in self._chosen(start, end)], _COLUMNS):
            for message in map(Ended._make, zip(*batch, strict=True)):
                if (first is None or message.created_at >= first) and (last is None or message.created_at < last):
                    yield message

    def turns(self) -> list[Turn] | None:
        """What circuits did; None when no export has brought the event log."""
        if self._events is None:
            return None
        names = ["id", "entity_id", "event_type", "created_at"]
        return [
            Turn(number, channel, kind, moment(at))
            for batch in self._read(self._events, names)
            for number, channel, kind, at in zip(*batch, strict=True)
            if kind in (OPENED, *CLOSED)
        ]

    def _read(self, paths: Iterable[str], columns: list[str]) -> Iterator[list[list[Any]]]:
        """Columns as lists, a file at a time; times as microseconds."""
        import pyarrow
        import pyarrow.parquet

        from menzil.spark.lake.errors import LakeDamagedError, LakeError
        from menzil.spark.lake.place import inside, shown
        from menzil.spark.parquet.read import of_store

        for path in paths:
            try:
                with self._system.open_input_file(inside(path)) as stream:
                    file = pyarrow.parquet.ParquetFile(stream, page_checksum_verification=True)
                    for batch in file.iter_batches(columns=columns):
                        yield [
                            (column.cast(pyarrow.timestamp("us", "UTC")).cast("int64") if _is_time(column) else column)
                            .to_pylist()
                            for column in (batch.column(name) for name in columns)
                        ]  # fmt: skip
            except FileNotFoundError as error:
                raise LakeDamagedError(f"{shown(path)} is missing.") from error
            except (pyarrow.ArrowException, OSError) as error:
                sentence = f"{shown(path)} cannot be read: {str(error).splitlines()[0]}."
                if of_store(error):
                    raise LakeError(
                        sentence, hint="check its rights and the store, then run the command again"
                    ) from error
                raise LakeDamagedError(sentence) from error


def _is_time(column: object) -> bool:
    import pyarrow.types

    return bool(pyarrow.types.is_timestamp(column.type))  # type: ignore[attr-defined]


def _micros(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000 + at.microsecond
