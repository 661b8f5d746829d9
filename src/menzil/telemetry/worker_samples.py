"""What a worker counts about itself, for --metrics-port: numbers that are added up anyway, and two histograms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from menzil.model.message import Message
from menzil.telemetry.metric_names import MOST, OTHER, POLL_BOUNDS, PULSE_BOUNDS
from menzil.telemetry.samples import Buckets, Samples, client, of_databases, written


class Histogram:
    """So many at or below each bound."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def buckets(self) -> Buckets:
        """As it is now."""
        return Buckets(self.bounds, tuple(self.counts), self.sum)


class WorkerCounts:
    """The counts of one worker; `timed` says that the histograms are read."""

    def __init__(self, *, timed: bool) -> None:
        self.timed = timed
        self.leases = 0
        self.polls = Histogram(POLL_BOUNDS)
        self.waits: dict[str, Histogram] = {}

    def leased(self, messages: Sequence[Message], seconds: float) -> None:
        """A call has leased these, in so many seconds."""
        self.leases += len(messages)
        if not self.timed:
            return
        self.polls.observe(seconds)
        now = datetime.now(UTC)
        for message in messages:
            if message.attempt == 1:
                due = message.scheduled_at or message.created_at
                self._wait_of(message.channel).observe(max(0.0, (now - due).total_seconds()))

    def _wait_of(self, channel: str) -> Histogram:
        waits = self.waits
        if channel not in waits and len(waits) >= MOST:
            channel = OTHER
        return waits.setdefault(channel, Histogram(PULSE_BOUNDS))


class Counted(NamedTuple):
    """What a worker has counted about one database; `up` where it serves several."""

    counts: WorkerCounts
    settles: Mapping[str, int]
    reconnects: int
    up: bool | None = None


def worker_page(counted: Counted, accept: str | None) -> tuple[str, bytes]:
    """Content type and body: the counts of the worker, and those of its process."""
    return written([*_samples(counted).families(), *_process()], accept)


def several_page(databases: Mapping[str, Counted], accept: str | None) -> tuple[str, bytes]:
    """The same for a worker that serves several databases."""
    samples = {name: _samples(counted) for name, counted in databases.items()}
    return written([*of_databases(samples), *_process()], accept)


def _samples(counted: Counted) -> Samples:
    counts, settles, reconnects, up = counted
    samples = Samples()
    if up is not None:
        samples.add("menzil_worker_database_up", up)
    samples.add("menzil_worker_leases_total", counts.leases)
    for result, count in settles.items():
        samples.add("menzil_worker_settles_total", count, result)
    samples.add("menzil_worker_reconnects_total", reconnects)
    samples.add("menzil_worker_poll_seconds", counts.polls.buckets())
    for channel, waits in list(counts.waits.items()):
        samples.add("menzil_wait_seconds", waits.buckets(), channel)
    return samples


def _process() -> list[Any]:
    prometheus = client("prometheus_client")
    process: Iterable[object] = (
        prometheus.ProcessCollector(registry=None),
        prometheus.PlatformCollector(registry=None),
        _Gc(),
    )
    return [metric for collector in process for metric in collector.collect()]  # type: ignore[attr-defined]


class _Gc:
    """Collections of Python's collector, as the official client names them."""

    def collect(self) -> list[object]:
        import gc

        core = client("prometheus_client.core")
        text = "Number of times this generation was collected"
        metric = core.CounterMetricFamily("python_gc_collections", text, labels=["generation"])
        for generation, stats in enumerate(gc.get_stats()):
            metric.add_metric([str(generation)], stats["collections"])
        return [metric]
