"""Processor time of single calls: sides take short turns, and the lowest turn of each side counts.

Other programs on the machine only ever add to a turn: they evict caches and interrupt. The lowest of many short turns
is what the work itself costs. The server's time is that of the one backend behind the connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import set_json_loads

from bench.server import Server, connected

Step = Callable[[], int]
Conn = psycopg.Connection[Any]


def backend_cpu(conn: Conn) -> float:
    """Microseconds of processor time of the server process behind this connection."""
    return int(Path(f"/proc/{conn.info.backend_pid}/schedstat").read_text().split()[0]) / 1e3


@dataclass
class Side:
    """One of the things that are compared. `step` does one piece of work and returns its units."""

    conn: Conn
    step: Step
    prepare: Callable[[], object] | None = None  # before each turn, not counted
    server: list[float] = field(default_factory=list)  # microseconds per unit, turn by turn
    client: list[float] = field(default_factory=list)

    def turn(self, steps: int, *, counts: bool) -> None:
        if self.prepare:
            self.prepare()
        server, client, units = backend_cpu(self.conn), time.process_time(), 0
        for _ in range(steps):
            units += self.step()
        spent = backend_cpu(self.conn) - server, (time.process_time() - client) * 1e6
        if not units:
            raise RuntimeError("A turn found nothing to do.")
        if counts:
            self.server.append(spent[0] / units)
            self.client.append(spent[1] / units)

    @property
    def lowest(self) -> float:
        """The server's microseconds per unit."""
        return min(self.server)

    @property
    def both(self) -> float:
        """Those of server and client together."""
        return min(one + other for one, other in zip(self.server, self.client, strict=True))


def compete(sides: dict[str, Side], steps: int, turns: int) -> None:
    """Let all sides take turns, one more than counts: the first one prepares statements and fills caches."""
    for number in range(turns + 1):
        for name in sides if number % 2 else reversed(sides):
            sides[name].turn(steps, counts=number > 0)


def connection(dsn: str) -> Conn:
    """A connection that commits each statement and leaves JSON as it came."""
    conn: Conn = psycopg.connect(dsn, autocommit=True, prepare_threshold=1)
    set_json_loads(lambda text: text, context=conn)
    # Statistics that were taken while a table was empty must not make its plan a scan of the whole table.
    conn.execute("set enable_seqscan = off")
    return conn


@contextmanager
def settings(server: Server, **values: str) -> Iterator[bool]:
    """Change settings of the server for a while, unless other programs use it. Yields whether they are changed."""
    if not server.own:
        yield False
        return
    with connected(server.dsn) as conn:
        for name, value in values.items():
            conn.execute(f"alter system set {name} = '{value}'")
        conn.execute("select pg_reload_conf()")
        time.sleep(0.2)  # until every process has read them
        try:
            yield True
        finally:
            for name in values:
                conn.execute(f"alter system reset {name}")
            conn.execute("select pg_reload_conf()")
