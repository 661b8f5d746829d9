"""A relay between a worker and a broker that misbehaves: swallows bytes, holds them back, cuts a frame in two."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from types import TracebackType
from typing import Self


class Relay:
    """Passes bytes on, both ways.

    swallow   bytes vanish, and the connections stay open
    hold      connections that were there before keep what they get until `release`; new ones work
    cut_after after so many bytes towards the client, the connection is reset, in the middle of whatever it is
    mute      what the broker answers vanishes, what the client sends arrives
    """

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.target = port
        self._tls = tls  # for clients; Valkey's wheel has no TLS of its own
        self.swallow = self.mute = False
        self.cut_after: int | None = None
        self.connections = self.sent = 0  # `sent`: bytes that went to the broker
        self._held: set[int] = set()
        self._released = asyncio.Event()
        self._answers = asyncio.Event()
        self._answers.set()
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()

    def hold(self) -> None:
        """Keep what comes over the connections of now."""
        self._released.clear()
        self._held = set(range(1, self.connections + 1))

    def release(self) -> None:
        """Hand on what was held."""
        self._held = set()
        self._released.set()

    def hold_answers(self) -> None:
        """Keep what the broker says."""
        self._answers.clear()

    def let_answers(self) -> None:
        """Hand on what the broker said."""
        self._answers.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers += [writer, back]
        for source, sink, answers in ((reader, back, False), (there, writer, True)):
            task = asyncio.create_task(self._pump(number, source, sink, answers))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, number: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter, answers: bool) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if number in self._held:
                    await self._released.wait()
                self.sent += 0 if answers else len(data)
                if answers:
                    await self._answers.wait()
                if self.swallow or (self.mute and answers):
                    continue
                if answers and self.cut_after is not None:
                    data = data[: self.cut_after]
                    sink.write(data)
                    await sink.drain()
                    self.cut_after = None
                    break
                sink.write(data)
                await sink.drain()
        # What is left for the broker is sent before the end; the client is cut off.
        if answers:
            sink.transport.abort()
        else:
            with suppress(OSError, RuntimeError):
                sink.write_eof()
