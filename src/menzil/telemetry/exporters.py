"""Exporters of several databases behind one page: asked at the same time, each value with the label `database`.

A database that does not answer within PATIENCE seconds is told as menzil_up 0, and slows no scrape beyond that. Its
question goes on in its own thread; the next scrape waits for the same answer and asks no second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock

from menzil.telemetry.exporter import FRESH, Exporter, Run, is_down
from menzil.telemetry.samples import Samples, of_databases, written

#: Seconds that a page waits for its databases.
PATIENCE = 5.0


class Exporters:
    """The metrics of several databases. Safe to share between threads."""

    def __init__(self, runs: Mapping[str, Run], *, fresh: float = FRESH, patience: float = PATIENCE) -> None:
        self._exporters = {name: Exporter(run, name=name, fresh=fresh) for name, run in runs.items()}
        self._patience = patience
        self._threads = ThreadPoolExecutor(max(1, len(runs)), "menzil-scrape")
        self._lock = Lock()
        self._asked: dict[str, Future[Samples]] = {}

    def render(self, accept: str | None = None) -> tuple[str, bytes]:
        """Content type and body for a request with this Accept header."""
        return written(list(of_databases(self.samples())), accept)

    def samples(self) -> dict[str, Samples]:
        """The numbers of each database."""
        with self._lock:
            for name, exporter in self._exporters.items():
                asked = self._asked.get(name)
                if asked is None or asked.done():
                    self._asked[name] = self._threads.submit(exporter.samples)
            asked_now = dict(self._asked)
        wait(asked_now.values(), self._patience)
        return {name: one.result() if one.done() else is_down() for name, one in asked_now.items()}

    def close(self) -> None:
        """Ask no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
