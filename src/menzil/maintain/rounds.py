"""Who sweeps, and when: each janitor's turn is claimed in the database, so one worker does it and no leader is needed.

A sweep that fails stops neither the others nor the worker. It is tried again with half the rows, down to one, so that
a row that cannot be swept costs as little as possible; what it said is kept in the janitor's row.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Protocol, TypeVar

import psycopg

from menzil.maintain.janitor import Janitor
from menzil.model.errors import ConnectionFailedError, MenzilError
from menzil.ops import working
from menzil.ops.op import Op

T = TypeVar("T")


class Runs(Protocol):
    """What runs an Op: a connection of the worker."""

    async def run(self, op: Op[T]) -> T: ...


#: Told the janitor's name, how much it swept, and what went wrong.
Tell = Callable[[str, int, str | None], Any]


class Rounds:
    """The turns of all janitors in one worker."""

    def __init__(self, janitors: Sequence[Janitor], link: Runs, worker: str, tell: Tell) -> None:
        self._janitors = janitors
        self._link = link
        self._worker = worker
        self._tell = tell
        self._limits = {janitor.name: janitor.limit for janitor in janitors}

    async def work(self) -> None:
        """Take turns until cancelled."""
        due = {janitor.name: 0.0 for janitor in self._janitors}
        while True:
            for janitor in self._janitors:
                if monotonic() >= due[janitor.name]:
                    await self._safely(janitor)
                    # Not all workers at the same moment.
                    due[janitor.name] = monotonic() + janitor.interval * random.uniform(0.9, 1.1)
            await asyncio.sleep(max(0.05, min(due.values()) - monotonic()))

    async def once(self) -> None:
        """Take every turn that is due, once."""
        for janitor in self._janitors:
            await self._safely(janitor)

    async def _safely(self, janitor: Janitor) -> None:
        try:
            if await self._link.run(working.janitor_claim(janitor.name, janitor.interval, self._worker)):
                await self._turn(janitor)
        except (MenzilError, psycopg.Error) as error:
            self._tell(janitor.name, 0, _sentence(error))

    async def _turn(self, janitor: Janitor) -> None:
        swept, error = 0, None
        for _ in range(janitor.rounds):
            limit = self._limits[janitor.name]
            try:
                count = await self._link.run(janitor.sweep(limit))
            except ConnectionFailedError:
                raise
            except (MenzilError, psycopg.Error) as raised:
                error = _sentence(raised)
                if limit == 1:
                    break
                self._limits[janitor.name] = limit // 2
                continue
            swept += count
            if count < limit:
                break
            self._limits[janitor.name] = min(janitor.limit, limit * 2)
        if error is None:
            self._limits[janitor.name] = janitor.limit
        await self._link.run(working.janitor_done(janitor.name, swept, error))
        if swept or error:
            self._tell(janitor.name, swept, error)


def _sentence(error: Exception) -> str:
    return error.message if isinstance(error, MenzilError) else str(error).strip()
