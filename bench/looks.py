"""Every page of the console as a viewer opens it, and what it costs the database: processor time and wall.

Processor time is what counts: on a busy machine the wall tells how long the server waited for its turn. For the same
reason the statement timeout of the console, 3 s by wall, is not in force while this lasts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import psycopg

from bench.stock import CORRELATION, Stock
from bench.turns import backend_cpu
from menzil.console.database import IDLE, LOCK, named
from menzil.console.page import Page
from menzil.console.pages import all_pages
from menzil.console.parts import Look
from menzil.console.texts import slug
from menzil.model.errors import MenzilError
from menzil.model.redact import Redactor
from menzil.ops import seat
from menzil.ops.loading import read_plainly
from menzil.ops.op import Op
from menzil.ops.run import run

T = TypeVar("T")
Conn = psycopg.Connection[Any]

OVERVIEW, LIST, MESSAGE, LIVE = "overview", "list", "one message", "live fragment"
#: Milliseconds of database time.
BUDGETS = {OVERVIEW: 200.0, LIST: 150.0, MESSAGE: 50.0, LIVE: 100.0}
PATIENCE = 60.0  # seconds for a statement
KINDS = {"/": OVERVIEW, "/messages/{id}": MESSAGE, "/compare": MESSAGE}


@dataclass(frozen=True)
class Visit:
    """A page, what stands in its path, and the words of its query."""

    page: Page
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return KINDS.get(self.page.path, LIST)

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        made = self.page.path
        for name, value in self.path.items():
            made = made.replace(f"{{{name}}}", quote(slug(value), safe="~"))
        return made + (f"?{urlencode(self.query)}" if self.query else "")

    @property
    def name(self) -> str:
        told = " ".join(f"{name}={value}" for name, value in {**self.path, **self.query}.items())
        return f"{self.page.path} {told}".strip()


def visits(stock: Stock) -> list[Visit]:
    """Every page of the router, some in several ways. A page without parameters is visited as it is."""
    ids = {name: str(number) for name, number in stock.ids.items()}
    old = (datetime.now(UTC) - timedelta(days=40)).strftime("%Y-%m-%d")
    searches = (
        "", "status:pending", "status:failed", "status:processing", "channel:c7", "channel:partner-3",
        'error:"timed out"', "key:k5", "idem:none", f"corr:{CORRELATION}", f"id:{ids['archived']}",
        f"until:{old} status:completed", f"until:{old} status:failed", f"before:{ids['archived']} channel:partner-3",
    )  # fmt: skip
    ways: dict[str, list[tuple[dict[str, str], dict[str, str]]]] = {
        "/": [({}, {"window": window}) for window in ("1h", "6h", "48h", "90d")],
        "/channels": [({}, {}), ({}, {"sort": "oldest"}), ({}, {"held": "1"})],
        "/channels/{name}": [({"name": name}, {"window": "48h"}) for name in ("c1", "e1", "partner-3")],
        "/messages": [({}, {"q": line} if line else {}) for line in searches],
        "/messages/{id}": [({"id": number}, {}) for number in ids.values()],
        "/compare": [({}, {"a": ids["waiting"], "b": ids["archived"]})],
        "/endpoints/{name}": [({"name": "e1"}, {"window": "24h"})],
        "/dead": [({}, {}), ({}, {"endpoint": "c1"})],
        "/dead/{hash}": [({"hash": stock.cause}, {})],
        "/plans/{id}": [({"id": str(stock.plan)}, {})],
    }
    found = []
    for page in all_pages():
        if "{" in page.path and page.path not in ways:
            raise RuntimeError(f"No visit is known for {page.path}.")
        found += [Visit(page, path, query) for path, query in ways.get(page.path, [({}, {})])]
    return found


@dataclass
class Cost:
    """Milliseconds of each repetition, and those of each question in the cheapest one."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    asked: dict[str, float] = field(default_factory=dict)
    trouble: str = ""

    @property
    def least(self) -> float:
        """Processor time: other programs only add to it."""
        return min(self.cpu)

    @property
    def told(self) -> dict[str, list[float]]:
        """What stands beside the figure."""
        return {"median": [median(self.cpu)], "by wall": [min(self.wall)], "median by wall": [median(self.wall)]}


def connection(dsn: str) -> Conn:
    """A connection as the console has it."""
    conn: Conn = psycopg.connect(named(dsn), autocommit=True, prepare_threshold=None)
    conn.execute("set default_transaction_read_only = on")
    read_plainly(conn)
    return conn


def cost(conn: Conn, visit: Visit, times: int) -> Cost:
    """Ask for all parts of the page, one after the other, so many times; only the database is timed."""
    found = Cost()
    for number in range(times + 1):
        timed = _Timed(conn)
        for part in visit.page.parts.values():
            try:
                with conn.transaction():
                    timed(seat.limits(PATIENCE, LOCK, IDLE))
                    part(Look(timed, visit.path, visit.query, "show", partial(Redactor, [])))
            except (MenzilError, psycopg.Error) as error:
                found.trouble = str(error).split("\n")[0]
        if number == 0:
            continue  # fills caches
        if not found.cpu or timed.cpu < found.least:
            found.asked = timed.asked
        found.wall.append(timed.wall)
        found.cpu.append(timed.cpu)
    return found


class _Timed:
    """Runs Ops and adds up the milliseconds of each."""

    def __init__(self, conn: Conn) -> None:
        self._conn = conn
        self.wall = self.cpu = 0.0
        self.asked: dict[str, float] = {}

    def __call__(self, op: Op[T]) -> T:
        wall, cpu = time.perf_counter(), backend_cpu(self._conn)
        try:
            return run(self._conn, op, own=True)
        finally:
            self.wall += (time.perf_counter() - wall) * 1e3
            spent = (backend_cpu(self._conn) - cpu) / 1e3
            self.cpu += spent
            text = " ".join(op.text.split())
            self.asked[text] = self.asked.get(text, 0.0) + spent
