"""Tells the database who works and how it goes, and hears of changed settings."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from importlib.metadata import version
from typing import TYPE_CHECKING

import psycopg

from menzil.model.errors import ConnectionFailedError, MenzilError
from menzil.ops import working
from menzil.worker.sources import ENDPOINTS

if TYPE_CHECKING:
    from menzil.worker.shift import Shift

#: Environment variable with the instance of a child of `menzil worker --processes`.
INSTANCE = "MENZIL_WORKER_INSTANCE"
#: Seconds between two signs of life.
EVERY = 5.0


def new_instance() -> str:
    """What tells this worker from another one of its name."""
    return os.environ.pop(INSTANCE, "") or secrets.token_hex(8)


class Registry:
    """The entry of one worker."""

    def __init__(self, shift: Shift, channels: list[str] | None) -> None:
        self._shift = shift
        self._channels = channels
        # Two workers of one name have two entries.
        self._instance = shift.branch.instance if shift.branch else new_instance()

    async def hello(self) -> None:
        """Enter this worker."""
        shift = self._shift
        concurrency = sum(source.concurrency for source in shift.sources)
        await shift.upkeep.run(
            working.hello(
                shift.name,
                self._instance,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=version("menzil"),
                channels=self._channels,
                concurrency=concurrency,
            )
        )
        serving = ",".join([ENDPOINTS] if self._channels is None else self._channels)
        shift.log.info("started", worker=shift.name, concurrency=concurrency, serving=serving)

    async def work(self) -> None:
        """Give signs of life."""
        while True:
            await asyncio.sleep(EVERY)
            try:
                if not await self._beat():
                    await self.hello()
                settings = await self._shift.upkeep.run(working.settings())
                self._shift.post.refresh(settings)
                self._shift.hide.learn(settings.get("redact"))
            except ConnectionFailedError:
                continue  # connection_lost has told of it
            except (MenzilError, psycopg.Error) as error:
                self._shift.log.warning("registry_failed", error=error)

    async def goodbye(self) -> None:
        """Say what was done, and leave."""
        await self._beat()
        await self._shift.upkeep.run(working.stop(self._shift.name, self._instance))

    async def _beat(self) -> bool:
        shift, tally = self._shift, self._shift.tally
        is_known = await shift.upkeep.run(
            working.heartbeat(
                shift.name,
                self._instance,
                in_flight=shift.in_flight,
                delivered=tally.delivered,
                failed=tally.failed,
                stopping=shift.stopping,
                tally=shift.tries.hand_over(),
            )
        )
        if is_known:
            shift.tries.acknowledged()
        return is_known
