"""Runs one bridge: reads batches, lets the database take them, and begins anew when either side went away.

Nothing is remembered here that matters. The position is in the database and moves in the transaction of the messages;
after every doubt the source is opened, or told to go on, from there.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import re
import secrets
import socket
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from menzil.bridge.desk import Desk
from menzil.bridge.log import LOGGER, say
from menzil.bridge.mapping import Mapper
from menzil.bridge.source import Batch, Source, SourceError, Surroundings
from menzil.bridge.sources import make_source
from menzil.deliver.guard import Guard
from menzil.model.errors import (
    BridgeMovedError,
    ConnectionFailedError,
    MenzilError,
    SecretError,
    UnknownNameError,
)
from menzil.model.secrets import decrypt_config, secret_keys
from menzil.ops import bridges, upkeep
from menzil.ops.bridges import Spec

BATCH = 500
HEARTBEAT = 5.0
SHORTEST, LONGEST = 0.1, 5.0
#: Seconds that one read waits for records: as long as a change of the bridge may go unnoticed.
PATIENCE = 1.0
PAUSED = "It is paused."
_NUMBER = re.compile(r"[0-9]+")


class BridgeGoneError(Exception):
    """The bridge was dropped, or was never created."""


@dataclass(slots=True)
class Progress:
    """What this process did so far."""

    taken: int = 0
    refused: int = 0
    lost: int = 0
    batches: int = 0
    moved: int = 0  # batches that another process had taken first
    error: str | None = None  # why nothing is taken now
    paused: bool = False


class Runner:
    """One bridge in one process."""

    def __init__(self, name: str, dsn: str, *, once: bool = False) -> None:
        self.name = name
        self.progress = Progress()
        self.instance = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._once = once
        self._desk = Desk(dsn)
        self._lags: dict[str, int] | None = None
        self._spec: Spec | None = None
        self._changed = asyncio.Event()
        self._rest = SHORTEST
        self._limit = BATCH
        # What the log has said: each state once, however often it is tried again meanwhile.
        self._was_open = False
        self._why: str | None = None  # why nothing is taken
        self._is_refused = False  # the database takes no records, or fewer than the source has: the channel is full

    async def run(self, stop: asyncio.Event) -> None:
        """Take records until told to stop; with `once`, until the end that the source had at the beginning.

        Raises BridgeGoneError; with `once` also what keeps it from taking: SourceError, MenzilError.
        """
        beats = asyncio.create_task(self._beat())
        try:
            while not stop.is_set():
                try:
                    if await self._serve(stop):
                        return
                except (SourceError, MenzilError) as error:
                    self._failed(error)
                    if self._once and not isinstance(error, ConnectionFailedError | BridgeMovedError):
                        raise
                    await self._pause(stop)
                except Exception as error:
                    # A fault of menzil, or an answer that no code expects: the other bridges of the process go on.
                    LOGGER.debug("unexpected", exc_info=True)
                    sentence = SourceError(f"The bridge met an error that it does not know: {type(error).__name__}")
                    self._failed(sentence)
                    if self._once:
                        raise sentence from error
                    await self._pause(stop)
        finally:
            beats.cancel()
            with suppress(asyncio.CancelledError, MenzilError):
                await beats
            await self.leave()

    async def spec(self) -> Spec:
        """Enter this process, and return the bridge as it is now."""
        opened = bridges.bridge_open(self.name, self.instance, socket.gethostname(), os.getpid(), version("menzil"))
        return await self._desk.run(opened)

    async def leave(self) -> None:
        """Say that this process ends, and hang up."""
        with suppress(MenzilError, OSError):
            await self._desk.run(bridges.bridge_close(self.name, self.instance))
        await self._desk.close()

    def _failed(self, error: Exception) -> None:
        said = error.message if isinstance(error, MenzilError) else str(error)
        if isinstance(error, UnknownNameError) and said.startswith("There is no bridge"):
            raise BridgeGoneError(said) from error
        if isinstance(error, SourceError):
            self._limit = max(1, self._limit // 2)  # records may be so large that many at once are too much
        if isinstance(error, SourceError | ConnectionFailedError):
            self._is_refused = False  # the next news is that it opened again
        why = _NUMBER.sub("0", said)  # how many more a full channel does not take changes with every try
        if self._why != why:
            hint = error.hint if isinstance(error, MenzilError) else None
            say(logging.WARNING, "waiting", bridge=self.name, why=said, hint=hint)
        self.progress.error, self._why = said, why

    async def _pause(self, stop: asyncio.Event) -> None:
        """Wait before the next try, a little longer each time and never at the same moment as others."""
        seconds, self._rest = self._rest * random.uniform(0.5, 1), min(LONGEST, self._rest * 2)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await stop.wait()

    # One opening of the source

    async def _serve(self, stop: asyncio.Event) -> bool:
        """Open the source and take from it; True when `once` is over."""
        self._changed.clear()
        spec = self._spec = await self.spec()
        if spec.paused:
            return await self._stand_still(stop)
        source = await self.source(spec)
        try:
            await source.open(self._position)
            ends = await source.ends() if self._once else {}
            if not self._is_refused and (self._why is not None or not self._was_open):
                self._was_open, self._why = True, None
                goal = spec.channel or spec.event_type
                say(logging.INFO, "opened", bridge=self.name, source=spec.protocol, goal=goal, **self._where(spec))
            return await self._take_all(source, spec, ends, stop)
        finally:
            await source.close()

    async def source(self, spec: Spec) -> Source:
        """Return the source of the bridge, with its secrets, not opened yet."""
        networks = await self._desk.run(upkeep.setting("broker_allowed_networks"))
        try:
            config = decrypt_config(spec.config, f"bridge {spec.name}", secret_keys(None))
        except SecretError as error:
            raise SourceError(error.message) from None
        known = Spec(
            spec.id, spec.name, spec.protocol, config, spec.channel, spec.event_type, spec.paused, spec.updated_at,
            spec.positions, spec.family,
        )  # fmt: skip
        guard = Guard.for_brokers({"broker_allowed_networks": networks})
        return make_source(known, Surroundings(guard, f"bridge {spec.name}"))

    def _where(self, spec: Spec) -> dict[str, str]:
        return {f"at_{partition}": position or "-" for partition, position in list(spec.positions.items())[:8]}

    async def _stand_still(self, stop: asyncio.Event) -> bool:
        if self._why != PAUSED:
            say(logging.INFO, "paused", bridge=self.name)
        self.progress.error, self.progress.paused = PAUSED, True
        self._why, self._is_refused = PAUSED, False
        if not self._once:
            await self._first(stop.wait(), self._changed.wait())
        return self._once

    async def _first(self, *waits: Coroutine[Any, Any, Any]) -> None:
        tasks = [asyncio.create_task(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _position(self, partition: str, start: str | None = None) -> str | None:
        return await self._desk.run(bridges.bridge_begin(self.name, partition, start))

    async def _take_all(self, source: Source, spec: Spec, ends: dict[str, str], stop: asyncio.Event) -> bool:
        mapper = Mapper(spec, has_positions=source.has_positions)
        most = int(spec.config.get("batch") or BATCH)
        self._limit = min(self._limit, most)  # smaller after a channel was full
        reached: dict[str, str | None] = {part: await self._position(part) for part in ends}
        loop = asyncio.get_running_loop()
        measured = 0.0
        while not stop.is_set() and not self._changed.is_set():
            if self._once and not any(source.is_behind(reached[part], end) for part, end in ends.items()) and ends:
                return True
            batch = await source.read(self._limit, PATIENCE)
            if loop.time() > measured + HEARTBEAT or (batch is None and self._lags is None):
                self._lags, measured = await source.lags(), loop.time()
            if batch is None:
                self.progress.error = None  # the source answers, and has nothing
                self._resumed()
                if self._once:
                    # The last records may have been deleted: then the end is never reached.
                    waiting = await source.lags() if ends else {}
                    ends = {part: end for part, end in ends.items() if waiting.get(part)}
                    if not ends:
                        return True
                # Another process may have taken what is missing.
                reached |= {part: await self._position(part) for part in ends}
                continue
            if await self._take(source, mapper, batch, stop):
                reached[batch.partition] = batch.end
                self._rest, self._limit = SHORTEST, min(most, self._limit * 2)
                if self._limit == most:
                    self._resumed()
        return False

    def _resumed(self) -> None:
        """Say that the database takes records again as they come, if it did not."""
        if self._is_refused or self._why is not None:
            self._is_refused, self._why = False, None
            say(logging.INFO, "resumed", bridge=self.name)

    async def _take(self, source: Source, mapper: Mapper, batch: Batch, stop: asyncio.Event) -> bool:
        rows = [mapper.row(record, batch.partition) for record in batch.records]
        taking = bridges.bridge_take(
            self.name, batch.partition, batch.begin, batch.end, rows, lost=batch.lost, worker=self.instance
        )
        try:
            found = await self._desk.run(taking)
        except BridgeMovedError as error:
            # The other process is ahead: look again in a while, and go on only if it stands still.
            self.progress.moved += 1
            say(logging.DEBUG, "moved", bridge=self.name, why=error.message)
            await asyncio.sleep(random.uniform(0.2, 1))
            await source.seek(batch.partition, await self._position(batch.partition))
            return False
        except MenzilError as error:
            # A channel may have room for a few records where it has none for many; and a batch may be too large.
            self._limit = max(1, min(self._limit, len(batch.records)) // 2)
            self._is_refused = True
            if self._once or source.has_positions:
                raise
            # A server may throw messages away that come back too often (a quorum queue of RabbitMQ 4 does after 20
            # times), so they stay here until there is room for them.
            self._failed(error)
            # The heartbeat may have met the same outage first, and asked for a new source. A change of the bridge is
            # found by the next heartbeat.
            self._changed.clear()
            await source.seek(batch.partition, None)
            await self._pause(stop)
            return False
        await source.acknowledge(batch)
        progress = self.progress
        progress.error = None
        progress.taken += found.taken
        progress.refused += found.refused
        progress.lost += batch.lost
        progress.batches += 1
        if found.refused:
            say(logging.WARNING, "refused", bridge=self.name, partition=batch.partition, records=found.refused)
        if batch.lost:
            facts = {"partition": batch.partition, "records": batch.lost, "after": batch.begin}
            say(logging.WARNING, "gap", bridge=self.name, **facts)
        return True

    # Signs of life

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT if self._spec is not None else 0.5)
            if self._spec is None:
                continue
            try:
                heard = await self._desk.run(
                    bridges.bridge_heartbeat(self.name, self.instance, self.progress.error, self._lags)
                )
            except ConnectionFailedError:
                # While the source has nothing, the main loop asks the database nothing, and would not meet this. In
                # trouble it asks, and holds records that a source takes back only so often: it must not begin anew.
                if self.progress.error in (None, PAUSED):
                    self._changed.set()
                continue
            except MenzilError:
                continue  # the main loop meets the same trouble, and says so
            if heard is None or heard.updated_at != self._spec.updated_at:
                self._changed.set()


__all__ = ["BridgeGoneError", "Progress", "Runner"]
