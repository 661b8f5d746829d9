"""Count a history that fits into one process: the figures that menzil.spark.jobs.report computes with Spark."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from menzil.report import figures as limits
from menzil.report.causes import cause, error_class
from menzil.report.figures import Figures, Row, Slo, is_silent, trouble
from menzil.report.incidents import Turn, incidents

POINTS = (0.5, 0.9, 0.99)
STATUSES = ("completed", "failed", "expired", "cancelled")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Ended(NamedTuple):
    """An ended message; times are microseconds since 1970."""

    id: int
    channel: str
    status: str
    created_at: int
    scheduled_at: int | None
    first_leased_at: int | None
    ended_at: int
    tries: int
    error: str | None


class Span(NamedTuple):
    """How many messages there are, and when the first and the newest were created."""

    messages: int
    first_at: int
    newest_at: int


@dataclass
class Group:
    """What is counted of any group of messages."""

    sent: int = 0
    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    retried: int = 0
    tries: int = 0
    within: int = 0
    first_s: array[float] = field(default_factory=lambda: array("d"))
    delivered_s: array[float] = field(default_factory=lambda: array("d"))

    def add(self, message: Ended, first: float | None, delivered: float | None, goal: float) -> None:
        """One more message."""
        self.sent += 1
        self.statuses[message.status] += 1
        self.retried += message.tries > 1
        self.tries += message.tries
        if first is not None:
            self.first_s.append(first)
        if delivered is not None:
            self.delivered_s.append(delivered)
            self.within += delivered <= goal

    def row(self, **more: object) -> Row:
        """As a row of the figures."""
        return {
            **more, "sent": self.sent, **self.statuses, "retried": self.retried, "tries": self.tries,
            "within": self.within, "first_s": percentiles(self.first_s), "delivered_s": percentiles(self.delivered_s),
        }  # fmt: skip


def percentiles(values: array[float]) -> list[float] | None:
    """The value below which so many of them lie; None when there are no values."""
    ordered = sorted(values)
    return [ordered[max(math.ceil(point * len(ordered)) - 1, 0)] for point in POINTS] if ordered else None


def tally(
    messages: Iterable[Ended],
    span: Span,
    *,
    source: str,
    slo: Slo | None = None,
    turns: Iterable[Turn] | None = None,
    before: Iterable[Ended] | None = None,
    redrivable: Mapping[str, int] | None = None,
) -> Figures:
    """The figures of these messages. `turns` are those of circuits, `before` the messages of the period before."""
    goal = slo or Slo()
    width = limits.bucket_width((span.newest_at - span.first_at) / 1e6) if span.messages else limits.WIDTHS[0]
    counted = _Counts(goal, width)
    last = 0
    for message in messages:
        counted.add(message)
        last = max(last, message.ended_at)
    total = counted.total.row(
        first_at=moment(span.first_at) if counted.total.sent else None,
        last_at=moment(last) if counted.total.sent else None,
        newest_at=moment(span.newest_at) if counted.total.sent else None,
    )
    earlier = None if before is None else _counted(before, goal)
    made = Figures(
        source, datetime.now(UTC), goal, width, total, before=None if earlier is None else earlier.total.row()
    )
    if not counted.total.sent:
        return made
    made = counted.figures(made, redrivable)
    if turns is not None:
        found = [row for row in incidents(turns) if _meets(row, total)]
        made = replace(made, incidents=found[: limits.INCIDENTS], incident_count=len(found))
    if earlier is not None:
        shown = {row["channel"] for row in made.endpoints}
        those = {name: group.row() for name, group in earlier.channels.items() if name in shown}
        made = replace(made, endpoints_before=those)
    return made


class _Counts:
    def __init__(self, goal: Slo, width: int) -> None:
        self.goal, self.width = goal, width
        self.total = Group()
        self.channels: dict[str, Group] = {}
        self.buckets: dict[int, Group] = {}
        self.series: dict[str, dict[int, list[int]]] = {}
        self.hours: dict[tuple[int, int], list[int]] = {}
        self.retries: dict[int, list[int]] = {}
        self.letters: dict[tuple[str, str], Row] = {}

    def add(self, message: Ended) -> None:
        clock = max(message.created_at, message.scheduled_at or message.created_at)
        first = None if message.first_leased_at is None else max(0.0, (message.first_leased_at - clock) / 1e6)
        delivered = max(0.0, (message.ended_at - clock) / 1e6) if message.status == "completed" else None
        seconds = message.created_at // 1_000_000
        bucket = seconds // self.width * self.width
        for group in (
            self.total,
            self.channels.setdefault(message.channel, Group()),
            self.buckets.setdefault(bucket, Group()),
        ):
            group.add(message, first, delivered, self.goal.seconds)
        done = message.status == "completed"
        one = self.series.setdefault(message.channel, {}).setdefault(bucket, [0, 0])
        one[0] += 1
        one[1] += done
        # 1 January 1970 was a Thursday; 0 is Monday.
        hour = self.hours.setdefault(((seconds // 86_400 + 3) % 7, seconds % 86_400 // 3600), [0, 0])
        hour[0] += 1
        hour[1] += message.status in ("failed", "expired")
        tries = self.retries.setdefault(min(message.tries, limits.MOST_TRIES), [0, 0, 0])
        tries[0] += 1
        tries[1] += done
        tries[2] += message.status == "failed"
        if message.status == "failed":
            self._letter(message)

    def _letter(self, message: Ended) -> None:
        error = message.error or ""
        key = (cause(error), error_class(error))
        letter = self.letters.get(key)
        if letter is None:
            letter = self.letters[key] = {
                "cause": key[0], "class": key[1], "messages": 0, "first_at": message.ended_at,
                "last_at": message.ended_at, "endpoints": set(), "channel": "", "sample_id": -1, "sample": "",
            }  # fmt: skip
        letter["messages"] += 1
        letter["first_at"] = min(letter["first_at"], message.ended_at)
        letter["last_at"] = max(letter["last_at"], message.ended_at)
        letter["endpoints"].add(message.channel)
        if message.id > letter["sample_id"]:
            letter |= {"sample_id": message.id, "channel": message.channel, "sample": error[:500]}

    def figures(self, made: Figures, redrivable: Mapping[str, int] | None) -> Figures:
        rows = [group.row(channel=name) for name, group in self.channels.items()]
        shown = sorted(rows, key=trouble)[: limits.ENDPOINTS]
        enough = [row for row in rows if row["sent"] >= min(limits.ENOUGH, self.total.sent) and row["completed"]]
        noisy = [row for row in rows if row["tries"] > row["completed"]]
        letters = sorted(self.letters.values(), key=lambda row: -row["messages"])
        errors = [
            row | {"endpoints": len(row["endpoints"]), "first_at": moment(row["first_at"]),
                   "last_at": moment(row["last_at"])}
            for row in letters[: limits.ERRORS]
        ]  # fmt: skip
        return replace(
            made,
            times=[self.buckets[bucket].row(bucket=bucket) for bucket in sorted(self.buckets)],
            endpoints=shown,
            endpoint_count=len(rows),
            silent_count=sum(map(is_silent, rows)),
            series={row["channel"]: _series(row["channel"], self.series[row["channel"]]) for row in shown},
            slowest=sorted(enough, key=lambda row: -row["delivered_s"][2])[: limits.LEADERS],
            noisiest=sorted(noisy, key=lambda row: row["completed"] - row["tries"])[: limits.LEADERS],
            hours=[
                {"weekday": day, "hour": hour, "sent": sent, "undelivered": bad}
                for (day, hour), (sent, bad) in sorted(self.hours.items())
            ],
            retries=[
                {"tries": tries, "messages": number, "completed": done, "failed": dead}
                for tries, (number, done, dead) in sorted(self.retries.items())
            ],
            errors=errors,
            error_count=len(letters),
            redrivable=None if redrivable is None else dict(redrivable),
        )


def _series(channel: str, buckets: Mapping[int, Sequence[int]]) -> list[Row]:
    return [
        {"channel": channel, "bucket": bucket, "sent": sent, "completed": done}
        for bucket, (sent, done) in sorted(buckets.items())
    ]


def _counted(messages: Iterable[Ended], goal: Slo) -> _Counts:
    counted = _Counts(goal, limits.WIDTHS[-1])
    for message in messages:
        counted.add(message)
    return counted


def _meets(incident: Row, total: Row) -> bool:
    return bool(
        incident["opened_at"] <= total["last_at"]
        and (incident["closed_at"] is None or incident["closed_at"] >= total["first_at"])
    )


def moment(micros: int) -> datetime:
    """A time of a message."""
    return _EPOCH + timedelta(microseconds=micros)
