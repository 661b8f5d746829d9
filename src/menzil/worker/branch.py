"""One database of a worker that serves several: tried until it can be served, and served until it leaves the set.

A database that cannot be reached, or that is refused (an older schema, no rights, the same database under another
address), is tried again with growing pauses. One log line says so, and another one when the reason changes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg

from menzil.model.errors import ConnectionFailedError, MenzilError, UsageError, translate
from menzil.ops import working
from menzil.ops.databases import Named
from menzil.ops.dsn import Dsn
from menzil.telemetry.worker_samples import Counted, WorkerCounts
from menzil.worker.link import Link
from menzil.worker.log import Hide, Log
from menzil.worker.permits import Pool
from menzil.worker.shift import Shift
from menzil.worker.tally import Tally

if TYPE_CHECKING:
    from menzil.worker.company import Company

#: Seconds between two tries to serve a database.
SHORTEST, LONGEST = 0.5, 30.0


class SameDatabaseError(UsageError):
    """Two of the databases are one."""


class Branch:
    """A database, and the shift that serves it while it can be served."""

    def __init__(self, company: Company, named: Named) -> None:
        self.name, self.dsn = named
        self._company = company
        self.instance = company.instance
        self.tally = Tally()
        self.counts = WorkerCounts(timed=company.options.metrics is not None)
        self.leaving = False
        self.error: MenzilError | psycopg.Error | None = None  # why it is not served
        self.identity: str | None = None  # while it is served, or about to be
        self.shift: Shift | None = None
        self.was_served = False
        self._running: asyncio.Task[Tally] | None = None
        self._wake = asyncio.Event()
        self._moved = False
        self._said = ""
        self._reconnects = 0
        self._hide = Hide(company.secrets())
        self._log = Log(self._hide, self.name)
        self.task = asyncio.create_task(self._live(), name=f"menzil-database-{self.name}")

    # What its shift asks for

    def secrets(self) -> list[str]:
        """Passwords of all databases: a handler may name another one than its own."""
        return self._company.secrets()

    def pool(self, kind: Hashable, size: int) -> Pool:
        """The permits that sources of this kind share."""
        return self._company.pool(kind, size)

    def max_bytes(self) -> int:
        """The part of max_bytes that is for this database."""
        return self._company.part_of_bytes()

    async def demand_own(self, link: Link) -> None:
        """Refuse to serve a database that another branch serves already, under another address."""
        try:
            found = await link.run(working.cluster())
        except (MenzilError, psycopg.Error) as error:
            if isinstance(error, ConnectionFailedError):
                raise
            found = await link.run(working.running_server())
        while (other := self._company.serving(found, self)) is not None:
            if not other.leaving:
                sentence = f"It is the same database as {other.name}, which is served already."
                raise SameDatabaseError(sentence, hint="leave one of the two out")
            await asyncio.wait([other.task])
        self.identity = found

    # What the outside sees

    @property
    def is_up(self) -> bool:
        """Whether messages of this database are served now."""
        return self.shift is not None and self.shift.started and not self.shift.lease.is_down

    @property
    def state(self) -> str:
        """One word: served, starting, unreachable, refused or leaving."""
        if self.leaving:
            return "leaving"
        if self.is_up:
            return "served"
        was_reached = self.shift is not None and self.shift.started
        if was_reached or isinstance(self.error, ConnectionFailedError):
            return "unreachable"
        return "starting" if self.error is None else "refused"

    def counted(self) -> Counted:
        """What it counts for the metrics."""
        reconnects = self._reconnects + (self.shift.reconnects if self.shift else 0)
        return Counted(self.counts, self.tally.settles(), reconnects, self.is_up)

    # Its life

    def stop(self, *, force: bool = False) -> None:
        """Leave: finish what is under way and hand back the rest; with force, hand back everything at once."""
        if self.leaving and not force:
            return  # asked a second time, a shift would hand back what it is about to finish
        self.leaving = True
        self._interrupt(force)

    def move(self, dsn: Dsn) -> None:
        """Serve it at another address from now on."""
        stops = self.leaving or self._moved  # already, and it finishes what is under way
        self.leaving, self._moved, self.dsn = False, True, dsn
        self._wake.set()
        if not stops:
            self._interrupt(False)

    def know(self, secrets: Iterable[str]) -> None:
        """Keep these out of log lines, too."""
        secrets = list(secrets)
        self._hide.know(secrets)
        if self.shift is not None:
            self.shift.hide.know(secrets)

    def _interrupt(self, force: bool) -> None:
        self._wake.set()
        if self.shift is not None:
            self.shift.stop(force=force)
            if self._running is not None and self.identity is None:
                self._running.cancel()  # it has leased nothing, and may wait for a server that does not answer

    async def _live(self) -> None:
        rest = SHORTEST
        while not self.leaving:
            self._wake.clear()
            self._moved = False
            served = await self._serve(self.dsn)
            if self._company.once or (self.error is None and not self._moved):
                return
            if self.error is not None and not self.leaving:
                rest = SHORTEST if served else rest
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), rest * random.uniform(0.75, 1))
                    rest = SHORTEST
                rest = min(LONGEST, rest * 2)

    async def _serve(self, dsn: Dsn) -> bool:
        """Serve until it is over; whether it was served at all. An error that is not of this database is raised."""
        company = self._company
        shift = self.shift = Shift(
            dsn, company.handlers, company.options, company.hooks, once=company.once, branch=self
        )  # fmt: skip
        self._running = asyncio.create_task(shift.run(), name=f"menzil-shift-{self.name}")
        found: MenzilError | psycopg.Error | None = None
        try:
            await self._running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                self._running.cancel()
                raise
        except (MenzilError, psycopg.Error) as error:
            found = (translate(error) or error) if isinstance(error, psycopg.Error) else error
        finally:
            self._reconnects += shift.reconnects
            self.was_served = self.was_served or shift.started
            self.error = found
            self.shift = self._running = self.identity = None
        if found is not None:
            self._said = "" if shift.started else self._said
            self._tell(found)
        company.look_refused()
        return shift.started

    def _tell(self, error: MenzilError | psycopg.Error) -> None:
        unreachable = isinstance(error, ConnectionFailedError)
        sentence = error.message if isinstance(error, MenzilError) else str(error).strip()
        event = "database_unreachable" if unreachable else "database_refused"
        news = event if unreachable else f"{event} {sentence}"
        if news != self._said:
            self._said = news
            hint = error.hint if isinstance(error, MenzilError) else None
            then = None if self._company.once else "it is tried again"
            say = self._log.warning if unreachable else self._log.error
            say(event, error=sentence, hint=hint, then=then)
