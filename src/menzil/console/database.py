"""The database as the console sees it: four connections to read with, two to act with, and a bound on everything.

The functions of watch/ are plain ones, so they run in threads, as many as there are connections. Every read has a
read-only transaction of its own whose limits end with it: a pooler in transaction mode may stand between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from menzil.client.pool import AllBusyError, OwnPool, PoolOptions
from menzil.console.budget import Budget
from menzil.console.questions import Common
from menzil.model.errors import ConnectionFailedError, MenzilError
from menzil.ops import acting, seat
from menzil.ops.connecting import Conn
from menzil.ops.dsn import Dsn, understood
from menzil.ops.op import Op
from menzil.ops.run import run
from menzil.watch.finding import Run

T = TypeVar("T")

READERS, ACTORS = 4, 2

#: Seconds for one statement, for one lock, and for an open transaction that says nothing.
STATEMENT, LOCK, IDLE = 3.0, 0.1, 5.0

#: Seconds until a new console asks again whether the schema fits, after a lock kept it from that.
LOCKED_FOR = 1.0

#: Seconds that a part waits for a connection before it asks whether the server answers at all: there are as many as
#: threads. If it does not, one part a second tries again, and all others say so at once.
CONNECT, DOWN_FOR = 1.0, 1.0
#: Seconds after which nothing is known any more: no page was open, and so no part has tried.
FORGOTTEN = 5.0

#: A server that went away without a word must not hold a reader for a quarter of an hour.
_ADDED = {
    "connect_timeout": "2", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}  # fmt: skip

#: Seconds for all questions of a page together, from its request on. A busy machine renders for a second more, and
#: people get an answer within 4 s. The form of an act may count what it would reach: only one person waits for it.
PAGE, FORM = 2.8, 3.4

#: An act may wait longer for a lock: a channel is locked for as long as a dequeue is at it.
ACT_STATEMENT, ACT_LOCK = 10.0, 2.0


TOO_LATE = f"This part was not ready after {PAGE:g} seconds and was left out."


class TooLateError(MenzilError):
    """The time of a page was over before a part of it was asked for."""


@dataclass
class Seen:
    """What a look cost, in seconds of the database, and of when the oldest answer is that it got from another one.

    `saved` is what it would have cost more if no other one had asked.
    """

    spent: float = 0.0
    oldest: datetime | None = None
    saved: float = 0.0


class _Reading:
    """Runs Ops in read-only transactions until the time of the page is over.

    A refusal ends its transaction, and the next Op begins another one: a part may ask for something else then.
    """

    def __init__(self, conn: Conn, deadline: float, seen: Seen, common: Common | None) -> None:
        self._conn = conn
        self._deadline = deadline
        self._seen = seen
        self._common = common
        self._open: ExitStack | None = None

    def __call__(self, op: Op[T]) -> T:
        if self._common is None:
            return self._ask(op)
        try:
            found, other = self._common.ask(op, self._ask, self._left())
        except TimeoutError:
            raise TooLateError(TOO_LATE) from None
        if other is not None:
            self._seen.oldest = min(self._seen.oldest or other.at, other.at)
            self._seen.saved += other.took
        return found

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TooLateError(TOO_LATE)
        return left

    def _ask(self, op: Op[T]) -> T:
        left, began, waited = self._left(), time.monotonic(), 0.0
        try:
            if self._open is None:
                self._open = ExitStack()
                self._open.enter_context(self._conn.transaction())
                run(self._conn, seat.limits(min(STATEMENT, left), LOCK, IDLE), own=True)
            return run(self._conn, op, own=True)
        except BaseException as error:
            if isinstance(error, psycopg.errors.LockNotAvailable):
                waited = LOCK  # the database did nothing meanwhile
            self.end(error)
            raise
        finally:
            self._seen.spent += max(time.monotonic() - began - waited, 0.0)

    def end(self, error: BaseException | None = None) -> None:
        """End the transaction."""
        stack, self._open = self._open, None
        if stack is not None:
            stack.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)


class _Acting:
    """Runs Ops in the transaction of an act; a refusal ends the act."""

    def __init__(self, conn: Conn) -> None:
        self._conn = conn

    def __call__(self, op: Op[T]) -> T:
        return run(self._conn, op, own=True)


class Database:
    """Opened at the first read. `acts` names the database again, as a role that may act."""

    def __init__(self, dsn: str, acts: str | None = None) -> None:
        self._reads = OwnPool(named(dsn), _options(READERS, STATEMENT, LOCK))
        self.budget, self.common = Budget(), Common()
        self._acts = OwnPool(named(acts or dsn), _options(ACTORS, ACT_STATEMENT, ACT_LOCK))
        self._locked_until = 0.0
        self._down: tuple[float, ConnectionFailedError] | None = None
        self._trying = threading.Lock()
        self._readers = ThreadPoolExecutor(READERS, "menzil-console-read")
        self._actors = ThreadPoolExecutor(ACTORS, "menzil-console-act")

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Let a thread of the readers do this; it calls read()."""
        return self._readers.submit(work)

    def submit_act(self, work: Callable[[], T]) -> Future[T]:
        """Let a thread of the actors do this; it calls act()."""
        return self._actors.submit(work)

    def read(self, ask: Callable[[Run], T], deadline: float, seen: Seen | None = None) -> T:
        """Ask in a read-only transaction; in a thread. With `seen`, answers may be those that another page got."""
        if time.monotonic() > deadline:
            raise TooLateError(TOO_LATE)
        conn = self._take(deadline)
        return self._ask(self._reads, conn, ask, deadline, seen or Seen(), None if seen is None else self.common)

    def plan(self, ask: Callable[[Run], T], deadline: float) -> T:
        """Ask the same way as the role that acts, and the server where it does: a reader may know less, or later."""
        return self._ask(self._acts, self._acts.take(), ask, deadline, Seen(), None)

    def _ask(
        self, pool: OwnPool, conn: Conn, ask: Callable[[Run], T], deadline: float, own: Seen, common: Common | None
    ) -> T:
        try:
            conn.read_only = True
            reading = _Reading(conn, deadline, own, common)
            try:
                return ask(reading)
            finally:
                reading.end()
        finally:
            pool.give_back(conn)
            self.budget.spend(own.spent)

    @property
    def down(self) -> ConnectionFailedError | None:
        """Why the server cannot be reached; None where that is not known."""
        known = self._down
        if known is None or time.monotonic() > known[0] + FORGOTTEN:
            return None
        return ConnectionFailedError(known[1].message, hint=known[1].hint)

    def _take(self, deadline: float) -> Conn:
        """A connection. While a lock keeps the first one from its handshake, one part waits for it and not all of them.

        They would wait one after the other, which takes longer than the pages have.
        """
        if time.monotonic() < self._locked_until:
            raise psycopg.errors.LockNotAvailable
        known, down = self._down, self.down
        if known is None or down is None:
            return self._connect(deadline)
        if time.monotonic() < known[0] or not self._trying.acquire(blocking=False):
            raise down
        try:
            return self._connect(deadline)
        finally:
            self._trying.release()

    def _connect(self, deadline: float) -> Conn:
        while True:
            try:
                conn = self._reads.take()
            except psycopg.errors.LockNotAvailable:
                self._locked_until = time.monotonic() + LOCKED_FOR
                raise
            except AllBusyError:  # a busy machine takes long to open one
                self._down = None
                if time.monotonic() > deadline:
                    raise TooLateError(TOO_LATE) from None
            except ConnectionFailedError as error:
                self._down = time.monotonic() + DOWN_FOR, error
                raise
            except MenzilError:  # the server answers, and has no menzil
                self._down = None
                raise
            else:
                self._down = None
                return conn

    def act(self, actor: str, change: Callable[[Run], T]) -> T:
        """Change something in one transaction that says who does it; in a thread."""
        conn = self._acts.take()
        try:
            conn.read_only = False
            with conn.transaction():
                run(conn, seat.limits(ACT_STATEMENT, ACT_LOCK, IDLE), own=True)
                run(conn, acting.act_as(actor, "console"), own=True)
                return change(_Acting(conn))
        finally:
            self._acts.give_back(conn)

    def close(self) -> None:
        """Close every connection; what is under way ends first, within its limits."""
        for threads in (self._readers, self._actors):
            threads.shutdown(wait=True, cancel_futures=True)
        self._reads.close()
        self._acts.close()


def _options(size: int, statement: float, lock: float) -> PoolOptions:
    """A pool whose first question, whether the schema fits, is bounded as all others are."""
    limits = seat.limits(statement, lock, IDLE)
    return PoolOptions(prepare=False, max_size=size, timeout=CONNECT, limits=limits, reconnect=CONNECT)


def named(dsn: str) -> str:
    """The DSN with the name that the server shows, and a patience that fits a page."""
    plain = understood(dsn)
    given = conninfo_to_dict(plain)
    added = {name: value for name, value in _ADDED.items() if not given.get(name)}
    made = make_conninfo(plain, application_name="menzil-console", **added)
    return Dsn(made, dsn.chosen_by) if isinstance(dsn, Dsn) else made
