"""The exporter: one scrape of the database, shared by all who ask within five seconds, in the format they ask for.

A scrape that fails is an answer, too: menzil_up 0. Prometheus then knows that the exporter lives and the database does
not answer; an HTTP error would tell neither.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from importlib.metadata import version
from time import monotonic
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import psycopg

from menzil.model.errors import MenzilError
from menzil.ops import scraping, watch, why
from menzil.ops.op import Op
from menzil.telemetry.channels import Named
from menzil.telemetry.metric_names import MOST
from menzil.telemetry.queue_samples import Found, samples_of
from menzil.telemetry.samples import Samples, client, written

LOGGER = logging.getLogger("menzil.metrics")
LOGGER.addHandler(logging.NullHandler())

#: Seconds for which an answer is given again.
FRESH = 5.0

T = TypeVar("T")


class Run(Protocol):
    """Runs an Op on the database that is watched."""

    def __call__(self, op: Op[T]) -> T: ...


class Exporter:
    """The metrics of one database. Safe to share between threads: while one scrapes, the others wait for its answer."""

    def __init__(self, run: Run, *, name: str | None = None, fresh: float = FRESH, most: int = MOST) -> None:
        """`name` is what log lines call the database, where there are several."""
        client("prometheus_client")  # refused now, not at the first scrape
        self._run = run
        self._called = "The database" if name is None else f"The database {name}"
        self._fresh = fresh
        self._lock = threading.Lock()
        self._named = Named(most)
        self._most = most
        self._successes: dict[str, int] = {}  # by job: when its last good round was, as far as we saw
        self._known: tuple[float, Samples] | None = None
        self._up = True

    def render(self, accept: str | None = None) -> tuple[str, bytes]:
        """Content type and body for a request with this Accept header."""
        return written(list(self.samples().families()), accept)

    def samples(self) -> Samples:
        """The numbers, at most `fresh` seconds old."""
        with self._lock:
            if self._known is None or monotonic() - self._known[0] >= self._fresh:
                self._known = None
                samples = self._scrape()
                self._known = (monotonic(), samples)
            return self._known[1]

    def _scrape(self) -> Samples:
        try:
            found = self._ask()
        except (MenzilError, psycopg.Error) as error:
            if self._up:
                sentence = error.message if isinstance(error, MenzilError) else type(error).__name__
                LOGGER.warning("%s cannot be scraped: %s", self._called, sentence)
            self._up = False
            return is_down()
        if not self._up:
            LOGGER.warning("%s can be scraped again.", self._called)
        self._up = True
        return samples_of(found, self._named, self._successes, version("menzil"))

    def _ask(self) -> Found:
        run = self._run
        states = run(why.channel_state())
        wanted = self._named.wanted(state["channel"] for state in states)
        return Found(
            schema_version=run(scraping.schema_version()),
            metrics=run(watch.metrics()),
            totals=run(scraping.totals(self._most, wanted)),
            states=states,
            workers=run(watch.get_worker_status()),
            jobs=run(scraping.jobs()),
            consumers=run(scraping.consumers()),
            plans=run(scraping.plans()),
            dead_rows=run(scraping.dead_rows()),
        )


def is_down() -> Samples:
    """What is told of a database that does not answer."""
    samples = Samples()
    samples.add("menzil_up", 0)
    return samples


_exporters: WeakKeyDictionary[Any, Exporter] = WeakKeyDictionary()
_making = threading.Lock()


def render(run: Run, accept: str | None = None) -> tuple[str, bytes]:
    """Content type and body of the metrics; callers that give the same `run` share one exporter and its answers."""
    owner: Any = getattr(run, "__self__", run)  # a bound method is a new object whenever it is looked up
    with _making:
        exporter = _exporters.get(owner)
        if exporter is None:
            # The exporter must not keep its key alive.
            exporter = _exporters[owner] = Exporter(_weakly(run))
    return exporter.render(accept)


def _weakly(run: Run) -> Run:
    from weakref import WeakMethod, ref

    known: Callable[[], Any] = WeakMethod(run) if hasattr(run, "__self__") else ref(run)

    def again(op: Op[T]) -> T:
        answer: T = known()(op)
        return answer

    return again
