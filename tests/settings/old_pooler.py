"""A pooler in transaction mode that knows nothing of prepared statements, as PgBouncer before 1.21.

A client gets a server connection for each transaction, always the one that has rested longest, and gives it back when
the server says that it is idle. Server connections are opened by libpq; then messages are passed on as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

GONE = (OSError, asyncio.IncompleteReadError)


@dataclass
class Server:
    """One server connection. The psycopg object keeps the socket alive."""

    conn: psycopg.Connection[Any]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Pooler:
    """Serves clients on a port of its own, in a thread of its own."""

    def __init__(self, dsn: str, size: int) -> None:
        self._dsn = make_conninfo(dsn, sslmode="disable", gssencmode="disable")
        self._size = size
        self._loop = asyncio.new_event_loop()
        self._idle: asyncio.Queue[Server] = asyncio.Queue()
        self._parameters: dict[str, str] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(60)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _open(self) -> None:
        for _ in range(self._size):
            conn = await asyncio.to_thread(psycopg.connect, self._dsn, autocommit=True, client_encoding="utf8")  # type: ignore[arg-type, var-annotated]
            names = ("server_version", "client_encoding", "server_encoding", "standard_conforming_strings")
            self._parameters = {name: conn.info.parameter_status(name) or "" for name in names}
            own = socket.socket(fileno=conn.fileno())
            reader, writer = await asyncio.open_connection(sock=socket.fromfd(own.fileno(), own.family, own.type))
            own.detach()
            self._idle.put_nowait(Server(conn, reader, writer))
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._listener.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        while not self._idle.empty():
            server = self._idle.get_nowait()
            server.writer.close()
            server.conn.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*GONE, asyncio.CancelledError):
            await self._greet(reader, writer)
            await Session(self._idle, reader, writer).work()
        writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Let everybody in, without encryption."""
        while True:
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            (code,) = struct.unpack("!I", (await reader.readexactly(length - 4))[:4])
            if code >> 16 == 3:
                break
            writer.write(b"N")
        told = [_message(b"R", struct.pack("!I", 0))]
        told += [_message(b"S", f"{name}\0{value}\0".encode()) for name, value in self._parameters.items()]
        writer.write(b"".join([*told, _message(b"K", struct.pack("!II", 1, 1)), _message(b"Z", b"I")]))
        await writer.drain()


class Session:
    """One client."""

    def __init__(self, idle: asyncio.Queue[Server], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._idle, self._reader, self._writer = idle, reader, writer
        self._server: Server | None = None
        self._answers = 0  # how many ends of statements the server still owes
        self._begun = False  # the client is in the middle of a statement

    async def work(self) -> None:
        try:
            while True:
                kind, whole = await _read(self._reader)
                if kind == b"X":
                    return
                if self._server is None:
                    self._server = await self._idle.get()
                    self._relay = asyncio.create_task(self._answer(self._server))
                self._begun = kind not in b"SQ"
                self._answers += not self._begun
                self._server.writer.write(whole)
                await self._server.writer.drain()
        finally:
            if self._server is not None:  # left in the middle: a connection that nobody can use any more
                self._relay.cancel()
                self._server.writer.close()

    async def _answer(self, server: Server) -> None:
        while self._server is not None:
            kind, whole = await _read(server.reader)
            if kind == b"A":  # a notification for some earlier client
                continue
            if kind == b"Z":
                self._answers -= 1
                if whole[5:] == b"I" and not self._answers and not self._begun:
                    self._server = None
                    self._idle.put_nowait(server)
            self._writer.write(whole)
            await self._writer.drain()


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


@contextmanager
def old_pooler(dsn: str, size: int = 3) -> Iterator[str]:
    """The DSN that leads through one with so many server connections."""
    pooler = Pooler(dsn, size)
    pooler.start()
    try:
        yield f"host=127.0.0.1 port={pooler.port} dbname=shop user=anybody sslmode=disable gssencmode=disable"
    finally:
        pooler.stop()
