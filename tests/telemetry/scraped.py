"""A database that is scraped, and what came out, read by the official parsers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from menzil.ops.op import Op
from menzil.ops.run import run
from menzil.telemetry.exporter import Exporter

T = TypeVar("T")
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Asked:
    """Runs Ops on one connection, and counts them."""

    def __init__(self, dsn: str) -> None:
        self.conn = psycopg.connect(dsn, autocommit=True)
        self.count = 0

    def run(self, op: Op[T]) -> T:
        self.count += 1
        return run(self.conn, op)


@contextmanager
def asking(dsn: str) -> Iterator[Asked]:
    asked = Asked(dsn)
    try:
        yield asked
    finally:
        asked.conn.close()


def count_now(dsn: str) -> None:
    """Let the pulse count, as the job of a worker does every ten seconds."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil._pulse(100000)")


def series(body: bytes, *, openmetrics: bool = False) -> Series:
    """Every sample, by its name and labels."""
    read = read_openmetrics if openmetrics else read_text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in read(body.decode())
        for sample in family.samples
    }


def value(found: Series, name: str, **labels: str) -> Any:
    return found.get((name, tuple(sorted(labels.items()))))


def scrape(dsn: str, exporter: Exporter | None = None) -> Series:
    """Count, and scrape once."""
    count_now(dsn)
    if exporter is not None:
        return series(exporter.render()[1])
    with asking(dsn) as asked:
        return series(Exporter(asked.run).render()[1])
