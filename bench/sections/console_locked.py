"""Every page of a console while a stranger holds one table after the other in ACCESS EXCLUSIVE mode.

The tables are those that the pages read: each page is opened once in a transaction, and its locks tell them. While a
table is locked all pages of a new console are opened, four at a time. Each must answer 200 within 4 s, and a page that
reads the table must say so in the place of the part. The lock stays until the last page has answered: a
page that waits for its end never gets it, and is late when the browser gives up after 30 s.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import psycopg

from bench import looks, stock
from bench.looks import Visit
from bench.seat import Page, Seat, get
from bench.server import connected
from bench.session import Session
from bench.stock import Conn
from menzil.console.parts import Look
from menzil.model.errors import MenzilError
from menzil.model.redact import Redactor
from menzil.ops.op import Op
from menzil.ops.run import run as ask

T = TypeVar("T")

MOST = 4.0
#: Seconds after which the server ends the lock of a stranger that is gone; longer than all pages together may take.
GONE = 600
#: How many tables; None: all of them.
TABLES = {False: None, True: 4}

#: Tables whose locks this transaction holds; a partition is told as its root.
_LOCKED = """
select distinct coalesce(pg_partition_root(c.oid), c.oid)::regclass::text
  from pg_locks l join pg_class c on c.oid = l.relation
 where l.pid = pg_backend_pid() and c.relkind in ('r', 'p') and c.relnamespace = 'menzil'::regnamespace"""


def run(session: Session) -> None:
    """One table after the other."""
    dsn = session.server.database()
    with connected(dsn) as conn:
        found = stock.build(conn, stock.QUICK)
    visits = list({visit.page.path: visit for visit in looks.visits(found)}.values())
    with looks.connection(dsn) as conn:
        reads = {visit.url: read_by(conn, visit) for visit in visits}
    tables = sorted(set().union(*reads.values()))[: TABLES[session.quick]]
    late: list[Page] = []
    refused: list[Page] = []
    silent: list[str] = []
    slowest: dict[str, float] = {}
    with psycopg.connect(dsn) as stranger:
        for table in tables:
            with Seat(dsn) as seat:  # a new one: it knows no answer from before the lock
                pages = while_locked(seat.port, stranger, table, visits)
            slowest[table] = max(page.seconds for page in pages)
            late += [page for page in pages if page.seconds > MOST]
            refused += [page for page in pages if page.status != 200]
            silent += [f"{table}: {page.url}" for page in pages if table in reads[page.url] and not says(page)]
            session.say(f"{table}: the slowest page took {slowest[table]:.2f} s")
    for line in [*(f"{page.status} {page.url}" for page in refused), *silent][:20]:
        session.say(f"   {line}")
    beside = {"tables": [len(tables)], "pages": [len(visits)]}
    session.figure("slowest page beside a locked table", [max(slowest.values())], at_most=MOST, unit="s", beside=beside)
    session.figure("pages later than 4 s", [len(late)], at_most=0, unit="pages", beside=beside)
    session.figure("pages that did not answer 200", [len(refused)], at_most=0, unit="pages", beside=beside)
    session.figure("pages that left a part out without a word", [len(silent)], at_most=0, unit="pages", beside=beside)
    session.server.remove(dsn)


def read_by(conn: Conn, visit: Visit) -> set[str]:
    """The tables that this page reads."""
    found: set[str] = set()
    for part in visit.page.parts.values():
        with conn.transaction():
            try:
                part(Look(partial(_run, conn), visit.path, visit.query, "show", partial(Redactor, [])))
            except MenzilError:
                raise RuntimeError(f"{visit.url} cannot be shown without a lock.") from None
            found |= {name for (name,) in conn.execute(_LOCKED).fetchall()}
    return found


def _run(conn: Conn, op: Op[T]) -> T:
    return ask(conn, op, own=True)


def while_locked(port: int, stranger: psycopg.Connection[object], table: str, visits: list[Visit]) -> list[Page]:
    """Open all pages, four at a time, while the table is locked."""
    stranger.execute("set local statement_timeout = '10s'")
    stranger.execute(f"set local idle_in_transaction_session_timeout = '{GONE}s'")
    stranger.execute(f"lock table {table} in access exclusive mode")
    with ThreadPoolExecutor(4) as browsers:
        pages = list(browsers.map(lambda visit: get(port, visit.url), visits))
    stranger.rollback()
    return pages


def says(page: Page) -> bool:
    """Whether the page has a sentence in the place of a part."""
    return 'class="trouble"' in page.text or "Could not look" in page.text
