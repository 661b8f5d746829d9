"""A worker on a copy of a database stands still until the copy is adopted.

It says so once. What it would deliver was sent in the original, and the worker of the original delivers it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg

from menzil.model.errors import ConnectionFailedError, CopyError, MenzilError
from menzil.ops import upkeep

if TYPE_CHECKING:
    from menzil.worker.shift import Shift

#: Seconds between two looks whether the copy was adopted.
EVERY = 2.0


class Standstill:
    """Waits while the database is a copy; the parts of a worker that lease share it."""

    def __init__(self, shift: Shift, stop: asyncio.Event) -> None:
        self._shift = shift
        self._stop = stop
        self._turn = asyncio.Lock()
        self._began = False
        self.told = False  # whether it has said that it waits

    @property
    def lasts(self) -> bool:
        """Whether a part of the worker waits for the copy to be adopted."""
        return self._turn.locked()

    async def over(self) -> None:
        """Return when the database is no copy, or when the worker is to stop. A worker that runs once does not wait."""
        async with self._turn:
            notice = await self._notice()
            self._began = True
            if notice is None or self._stop.is_set():
                return
            if self._shift.once:
                raise CopyError(notice)
            self.told = True
            self._shift.log.warning("copy", worker=self._shift.name, why=notice, hint=CopyError.default_hint)
            while notice is not None and not self._stop.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), EVERY)
                notice = await self._notice()
            if notice is None:
                self._shift.log.info("adopted", worker=self._shift.name)

    async def _notice(self) -> str | None:
        while not self._stop.is_set():
            try:
                return await self._shift.upkeep.run(upkeep.copy_notice())
            except ConnectionFailedError:
                await self._shift.upkeep.rest()
            except (MenzilError, psycopg.Error) as error:
                # A worker at work survives what a moment brings, such as a statement timeout; one that starts says it.
                if self._shift.once or not self._began:
                    raise
                self._shift.log.warning("copy_unknown", worker=self._shift.name, error=error)
                await self._shift.upkeep.rest()
        return None
