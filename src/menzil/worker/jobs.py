"""Housekeeping: this worker does the jobs whose time has come, one after the other.

A job is claimed in the database, so one worker does it and no leader is needed. Claim and round are transactions of
their own: a job that fails stops neither the other jobs nor the worker. What it said is in the view menzil.jobs.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import psycopg

from menzil.model.errors import ConnectionFailedError, MenzilError
from menzil.ops import working

if TYPE_CHECKING:
    from menzil.worker.shift import Shift

#: Seconds between two looks for jobs that are due.
EVERY = 1.0


class Jobs:
    """The jobs of the database, as one worker does them."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift

    async def work(self) -> None:
        """Do what is due, until cancelled."""
        while True:
            if not self._shift.standstill.lasts:
                await self.once()
            # Not all workers at the same moment.
            await asyncio.sleep(EVERY * random.uniform(0.9, 1.1))

    async def once(self) -> None:
        """Do what is due now; a job that is due again meanwhile is the last one of this look."""
        done: set[str] = set()
        again = False
        try:
            while not again:
                name = await self._shift.upkeep.run(working.job_claim(self._shift.name))
                if name is None:
                    return
                self._tell(name, await self._shift.upkeep.run(working.job_run(name)))
                again = name in done
                done.add(name)
        except (MenzilError, psycopg.Error) as error:
            if not isinstance(error, ConnectionFailedError):  # of which connection_lost has told
                self._shift.log.warning("jobs_failed", error=error)
            self._shift.happened += 1

    def _tell(self, name: str, count: int | None) -> None:
        if count is None:
            hint = "menzil.jobs says why, in last_error"
            self._shift.log.warning("job_failed", job=name, hint=hint)
        elif count:
            self._shift.log.info("job", job=name, count=count)
        if count != 0:
            self._shift.happened += 1
