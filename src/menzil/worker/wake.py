"""How an idle worker learns that there is something to do.

Polling always goes on: soon after something happened, then less and less often. NOTIFY is only a hint that makes it
quicker. Whether hints arrive is tested by sending one: behind a pooler in transaction mode none does, and then the
worker polls faster and says so.

Every role that may connect can send a hint. So hints that led to no message are heeded 40 times a second at most, and
a flood of them is not read at all: the worker polls for a while instead.
"""

from __future__ import annotations

import asyncio
import secrets
from time import monotonic
from typing import Any

import psycopg
from psycopg.pq.abc import PGconn

from menzil.model.errors import MenzilError
from menzil.ops import working
from menzil.worker.address import Address
from menzil.worker.link import Link
from menzil.worker.log import Log

#: Seconds for a hint of our own to come back, between two such tests, and until the next try after one failed.
ECHO, CHECK, AGAIN = 3.0, 30.0, 60.0
#: Shortest pause between two polls, and the longest with and without hints.
SHORTEST, LISTENING, DEAF = 0.01, 0.5, 0.1
#: After so many hints in a row that led to no message, so many seconds pass between two that are heeded.
VAIN, CALM = 20, 0.025
#: So many useless hints in one second are a flood.
FLOOD = 1000


class Bell:
    """Wakes the tasks that wait for one source; `count` says how often it rang."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        """Something may have become ready."""
        self.count += 1
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            _end(one)

    async def wait(self, heard: int, seconds: float) -> bool:
        """Wait until it rings, or rang since `heard`; False when `seconds` passed in silence."""
        if self.count != heard:
            return True
        # A future and a timer: asyncio.wait would take one more round of the event loop.
        loop = asyncio.get_running_loop()
        one = loop.create_future()
        self._waiting.append(one)
        timer = loop.call_later(seconds, _end, one)
        try:
            await one
        finally:
            timer.cancel()
            if one in self._waiting:
                self._waiting.remove(one)
        return self.count != heard


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _fall_silent(heard: asyncio.Future[tuple[int, bool]]) -> None:
    if not heard.done():
        heard.set_result((0, False))


class Wake:
    """The pace of polling, and all the bells."""

    def __init__(self, poll: tuple[float, float] | None) -> None:
        self.shortest = poll[0] if poll else SHORTEST
        self._longest = poll[1] if poll else None
        self.live = False  # whether hints arrive
        self.vain = 0  # hints since the last message
        self.bells: list[Bell] = []

    @property
    def longest(self) -> float:
        """The longest pause between two polls."""
        return self._longest or (LISTENING if self.live else DEAF)

    def ring(self) -> None:
        """Wake every source: a hint does not say which channel has a new message."""
        for bell in self.bells:
            bell.ring()


class FloodError(Exception):
    """More hints arrive than are worth reading."""


class Listener:
    """Rings the bell for hints, on a connection of its own."""

    def __init__(self, wake: Wake, address: Address, upkeep: Link, log: Log) -> None:
        self._wake = wake
        self._address = address
        self._upkeep = upkeep
        self._log = log
        self._told = False
        self._useless, self._since = 0, 0.0  # hints that were of no use, and when their count began

    async def work(self) -> None:
        """Listen, and begin again whenever the connection breaks."""
        link = Link("listen", self._address, self._log)
        while True:
            try:
                await self._listen(link)
            except (MenzilError, psycopg.Error):
                self._wake.live = False
                await link.close()
                await link.rest()
            except FloodError:
                self._wake.live = False
                hint = "some session sends NOTIFY menzil_wake without end; pg_stat_activity shows its last query"
                self._log.warning("notify_flood", polling_every=DEAF, hint=hint)
                await link.close()
                await asyncio.sleep(AGAIN)
            else:
                await link.close()
                await asyncio.sleep(AGAIN)

    async def _listen(self, link: Link) -> None:
        """Listen until hints stop coming through."""
        conn = await link.connection()
        await conn.execute(working.listen().text)
        while True:
            token = secrets.token_hex(8)
            await self._upkeep.run(working.call(token))
            if not await self._hear(conn, token, ECHO):
                self._wake.live = False
                if not self._told:
                    self._told = True
                    hint = "is there a pooler in transaction mode? then use --no-listen"
                    self._log.warning("notify_does_not_arrive", polling_every=DEAF, hint=hint)
                await conn.execute(working.unlisten().text)
                return
            if not self._wake.live:
                self._wake.live, self._told = True, False
                self._wake.ring()  # notifications may have been missed until now
            await self._hear(conn, None, CHECK)

    async def _hear(self, conn: psycopg.AsyncConnection[Any], token: str | None, seconds: float) -> bool:
        """Ring for hints until the token comes back or the time is over."""
        loop, pgconn, socket = asyncio.get_running_loop(), conn.pgconn, conn.pgconn.socket
        ends = monotonic() + seconds
        while (left := ends - monotonic()) > 0:
            heard: asyncio.Future[tuple[int, bool]] = loop.create_future()
            loop.add_reader(socket, self._read, pgconn, socket, token, heard)
            timer = loop.call_later(left, _fall_silent, heard)
            try:
                self._read(pgconn, socket, token, heard)  # what arrived before
                noise, back = await heard
            except psycopg.Error:
                raise  # the socket is closed, and its number may be that of another connection by now
            except BaseException:
                loop.remove_reader(socket)
                raise
            else:
                loop.remove_reader(socket)
            finally:
                timer.cancel()
            if back:
                return True
            if noise:
                await self._calm(noise)
        return False

    def _read(self, pgconn: PGconn, socket: int, token: str | None, heard: asyncio.Future[tuple[int, bool]]) -> None:
        """Read hints in the callback of the socket, and ring at once: no other task stands between hint and lease."""
        if heard.done():
            return
        rung, noise, back = False, 0, False
        try:
            pgconn.consume_input()
            while (hint := pgconn.notifies()) is not None:
                payload = hint.extra.decode(errors="replace")
                rung = rung or not payload
                back = back or payload == token
                noise += bool(payload) or self._wake.vain > VAIN
        except psycopg.Error as error:
            asyncio.get_running_loop().remove_reader(socket)
            heard.set_exception(error)
            return
        if rung:
            self._wake.vain += 1
            self._wake.ring()
        if noise or back:
            heard.set_result((noise, back))

    async def _calm(self, noise: int) -> None:
        """Let some time pass after useless hints: those that arrive meanwhile cost one waking together."""
        now = monotonic()
        if now - self._since > 1:
            self._useless, self._since = 0, now
        self._useless += noise
        if self._useless > FLOOD:
            raise FloodError
        await asyncio.sleep(CALM)
