"""The source `redis`: a stream of Redis or Valkey, read with XREAD from the stored id. No consumer group is needed.

A position is the id of the last entry that was taken, and behind # the number of entries that the stream had got by
then. The server counts all entries that were ever added (since Redis 7): the difference tells how many wait, and how
many were trimmed away before they were read.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from contextlib import suppress
from typing import Any

from menzil.bridge.asking import Asking, dialled
from menzil.bridge.source import Batch, Positions, Record, Source, SourceError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.redis.protocol import target
from menzil.deliver.redis.resp import Replies, Reply, ReplyError, command
from menzil.deliver.redis.session import RedisSession
from menzil.model.wire import json_dumps

#: Bytes that one XREAD may bring, as far as the sizes of earlier entries tell; and of one entry, at most.
_WANTED, _LONGEST = 4 * 1024 * 1024, 536_870_912
#: A longer backlog is said to be at least this long: counting it would mean reading it.
COUNTED = 1000
#: Seconds for an answer that the server gives at once.
ANSWER = 10.0


class RedisReader(Asking, RedisSession):
    """A connection that asks and gets one reply for each question."""

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket) -> None:
        super().__init__(plan, host, peer, sock)
        self._replies = Replies(_LONGEST, 1_000_000, 2 * _LONGEST, 8)
        self._asked: deque[asyncio.Future[Reply]] = deque()

    async def ask(self, *parts: bytes, seconds: float) -> Reply:
        """Return the reply to a command. Raises SourceError."""
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self.write(command(*parts))
        reply = await self.answered(answer, seconds)
        if isinstance(reply, ReplyError):
            raise SourceError(f"{self.peer} refused {parts[0].decode()}: {reply}")
        return reply

    async def together(self, *commands: tuple[bytes, ...]) -> list[Reply]:
        """Return the replies to commands that the server runs as one step. Raises SourceError."""
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Reply]] = [loop.create_future() for _ in range(len(commands) + 2)]
        self._asked.extend(answers)
        self.write(b"".join([command(b"MULTI"), *(command(*parts) for parts in commands), command(b"EXEC")]))
        for answer in answers[:-1]:
            refused = await self.answered(answer, ANSWER)
            if isinstance(refused, ReplyError):
                raise SourceError(f"{self.peer} refused a command: {refused}")
        replies = await self.answered(answers[-1], ANSWER)
        if not isinstance(replies, list) or len(replies) != len(commands):
            raise SourceError(f"{self.peer} refused a command: {replies!r}")
        if isinstance(replies[-1], ReplyError):
            raise SourceError(f"{self.peer} refused {commands[-1][0].decode()}: {replies[-1]}")
        return replies

    def feed(self, data: bytes) -> None:
        """Read replies."""
        for reply in self._replies.feed(data):
            if len(self._greetings) < self._wanted:
                self._greetings.append(reply)
                if len(self._greetings) == self._wanted:
                    self.heard()
            elif self._asked:
                answer = self._asked.popleft()
                if not answer.done():
                    answer.set_result(reply)


class RedisSource(Source):
    """One stream; its name is its only partition."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._stream: str = self.config["stream"]
        self._reader: RedisReader | None = None
        self._at = "0-0#0"  # the position in the words of the database
        self._last = "0-0"  # the entry that was read last
        self._number: int | None = None  # how many entries the stream had got by then; None: not known
        self._largest = _WANTED / 16  # a guess at the bytes of an entry: the first read is a small one
        self._reading: asyncio.Task[Reply] | None = None

    async def open(self, positions: Positions) -> None:
        """Connect, and go to the stored position or to the start."""
        session = await dialled(RedisReader, self.config, (target(self.config),), self.surroundings, late_tls=False)
        assert isinstance(session, RedisReader)
        self._reader = session
        stored = await positions(self._stream)
        if stored is None:
            about = await self._about()
            added, length = _count(about, "entries-added"), _count(about, "length")
            removed = None if added is None or length is None else max(0, added - length)  # before the bridge began
            start = self.config["start"]
            words = {"earliest": _position("0-0", removed), "latest": _position(about["last-generated-id"], added)}
            start = words.get(start, start)
            stored = await positions(self._stream, start) or start
        await self.seek(self._stream, stored)
        self._check(await self._about())

    async def seek(self, partition: str, position: str | None) -> None:  # noqa: ARG002 # there is one
        """Read on from here."""
        self._at = position or "0-0#0"
        self._last, _, number = self._at.partition("#")
        self._number = int(number) if number else None
        reading, self._reading = self._reading, None
        if reading is not None:
            with suppress(SourceError):
                await reading  # its reply is from before the seek; at most the time that the server may wait

    async def read(self, limit: int, seconds: float) -> Batch | None:
        """Ask for entries; if there are none, let the server wait for the first one."""
        batch = await self._read(limit)
        if batch is not None:
            return batch
        if self._reading is None:
            waits = (b"XREAD", b"COUNT", b"1", b"BLOCK", b"%d" % max(1, int(seconds * 1000)), b"STREAMS")
            where = (self._stream.encode(), self._last.encode())
            self._reading = asyncio.create_task(self._connected.ask(*waits, *where, seconds=seconds + 10))
        # Cancelled, the question is still under way: the next read waits for its reply.
        reply = await asyncio.shield(self._reading)
        self._reading = None
        return None if reply is None else await self._read(limit)

    async def _read(self, limit: int) -> Batch | None:
        """Read entries, and what the stream is like, in one atomic step: nothing is trimmed in between."""
        count = max(1, min(limit, int(_WANTED / self._largest)))
        about, reply = await self._connected.together(
            (b"XINFO", b"STREAM", self._stream.encode()),
            (b"XREAD", b"COUNT", b"%d" % count, b"STREAMS", self._stream.encode(), self._last.encode()),
        )
        known = _known(about)
        self._check(known)
        if reply is None:
            return None
        try:
            ((_, entries),) = reply  # type: ignore[misc]  # checked by what follows
            records = [_record(id, fields) for id, fields in entries]  # type: ignore[misc, union-attr]
        except (TypeError, ValueError) as error:
            raise SourceError(f"{self._connected.peer} answered XREAD with something else") from error
        lost = 0
        added, length = _count(known, "entries-added"), _count(known, "length")
        if added is not None and length is not None and known.get("first-entry") == records[0].position:
            before = added - length  # what was removed is all that came before the first entry
            lost = 0 if self._number is None else max(0, before - self._number)
            self._number = before
        if self._number is not None:
            self._number += len(records)
        if len(records) < count:
            self._number = added  # this is the end of the stream
        sizes = [len(record.body or b"") + 200 for record in records]
        self._largest = max(self._largest * 0.5, sum(sizes) / len(sizes))
        self._last = records[-1].position or self._last
        begin, self._at = self._at, _position(self._last, self._number)
        return Batch(self._stream, begin, self._at, records, lost)

    def _check(self, known: dict[str, str]) -> None:
        """Refuse to read a stream that ends before the stored position: other entries may have had these ids."""
        if _pair(known["last-generated-id"]) < _pair(self._last):
            raise SourceError(
                f"The stream {self._stream!r} ends at {known['last-generated-id']}, before the stored position "
                f"{self._last}: it was made anew. Seek to where the bridge is to go on."
            )
        added = _count(known, "entries-added")
        if added is not None and self._number is not None and added < self._number:
            self._number = None  # made anew, with later ids: nothing is missing, and the count begins again

    async def lags(self) -> dict[str, int]:
        """Count what waits, exactly or up to a bound."""
        known = await self._about()
        added = _count(known, "entries-added")
        if _pair(known.get("last-entry", "0-0")) <= _pair(self._last):
            return {self._stream: 0}  # what came later was deleted, and nothing can be read
        if added is not None and self._number is not None:
            return {self._stream: max(0, added - self._number)}
        after = b"(" + self._last.encode()
        entries = await self._ask(b"XRANGE", self._stream.encode(), after, b"+", b"COUNT", b"%d" % COUNTED)
        return {self._stream: len(entries) if isinstance(entries, list) else 0}

    async def ends(self) -> dict[str, str]:
        """The id of the last entry."""
        return {self._stream: (await self._about())["last-generated-id"]}

    def is_behind(self, position: str | None, end: str) -> bool:
        """Compare two ids."""
        return _pair(position or "0-0") < _pair(end)

    async def close(self) -> None:
        """Hang up."""
        if self._reader is not None:
            self._reader.abort()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    @property
    def _connected(self) -> RedisReader:
        if self._reader is None:
            raise SourceError("The source is not open")
        return self._reader

    async def _ask(self, *parts: bytes) -> Reply:
        return await self._connected.ask(*parts, seconds=ANSWER)

    async def _about(self) -> dict[str, str]:
        """What XINFO says of the stream."""
        try:
            return _known(await self._ask(b"XINFO", b"STREAM", self._stream.encode()))
        except SourceError as error:
            if "no such key" not in str(error):
                raise
            return _known(None)


def _known(reply: Reply) -> dict[str, str]:
    """Read an answer of XINFO. A stream that is not there yet is empty."""
    if isinstance(reply, ReplyError) and "no such key" not in str(reply):
        raise SourceError(f"XINFO was refused: {reply}")
    if not isinstance(reply, list):
        return {"last-generated-id": "0-0", "entries-added": "0", "length": "0"}
    known = {"last-generated-id": "0-0"}
    for name, value in zip(reply[::2], reply[1::2], strict=False):
        if isinstance(value, list) and value:
            value = value[0]  # an entry: its id
        if isinstance(name, bytes) and isinstance(value, bytes | int):
            known[name.decode()] = value.decode() if isinstance(value, bytes) else str(value)
    return known


def _count(known: dict[str, str], name: str) -> int | None:
    return int(known[name]) if name in known else None


def _position(id: str, number: int | None) -> str:
    return id if number is None else f"{id}#{number}"


def _record(id: Any, fields: Any) -> Record:
    """Read an entry: one that menzil wrote, or any other, whose fields become a JSON object."""
    pairs: list[tuple[bytes, bytes]] = list(zip(fields[::2], fields[1::2], strict=True))
    named = dict(reversed(pairs))  # of a repeated field, the first value
    position = id.decode()

    def text(name: bytes) -> str | None:
        value = named.get(name)
        return None if value is None else value.decode("utf-8", "backslashreplace")

    if b"payload" not in named:
        try:
            body = json_dumps(_object(pairs))
        except UnicodeDecodeError:
            return Record(
                _raw(pairs), position, fault="The entry has no field payload, and a field that is not text in UTF-8."
            )
        return Record(body.encode() if isinstance(body, str) else body, position, named.get(b"key"))
    if [name for name, _ in pairs].count(b"payload") > 1:
        return Record(_raw(pairs), position, fault="The entry has the field payload more than once.")
    headers = [(name[2:].decode("utf-8", "replace"), value) for name, value in pairs if name[:2] == b"h:"]
    headers += [(name.decode("utf-8", "replace"), value) for name, value in pairs if name[:3] == b"ce_"]
    return Record(
        named[b"payload"],
        position,
        named.get(b"key"),
        headers,
        text(b"id"),
        text(b"type"),
        text(b"content_type"),
        text(b"correlation_id"),
    )


def _raw(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """Return all fields as lines, for people who look at a dead letter."""
    return b"".join(b"%b\n%b\n" % pair for pair in pairs)


def _object(pairs: list[tuple[bytes, bytes]]) -> dict[str, str | list[str]]:
    """Return the fields of an entry. One that is repeated has a list of its values."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name.decode(), []).append(value.decode())
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def _pair(id: str) -> tuple[int, int]:
    milliseconds, _, sequence = id.partition("#")[0].partition("-")
    return int(milliseconds), int(sequence or 0)
