"""Reads what a NATS server says: lines, and messages with a length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from menzil.deliver.broker.session import CodecError

#: Bytes of a line (INFO is the longest) and of a message; acknowledgements have a few hundred.
LONGEST_LINE, LONGEST_MESSAGE = 262144, 65536


@dataclass(frozen=True, slots=True)
class Line:
    """Something that the server says: INFO, PING, PONG, +OK, -ERR."""

    word: bytes
    rest: bytes


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message on a subject that we listen to."""

    subject: bytes
    head: bytes = field(repr=False)  # from "NATS/1.0" on; empty when there is none
    body: bytes = field(repr=False)
    reply: bytes = b""  # the subject that an answer would go to


class Reader:
    """Reads from bytes that come in pieces."""

    def __init__(self, longest_message: int = LONGEST_MESSAGE) -> None:
        self._data = b""
        self._longest = longest_message

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of what came before."""
        return not self._data

    def feed(self, data: bytes) -> Iterator[Line | Arrival]:
        """Yield what is complete."""
        self._data += data
        start = 0
        try:
            while (found := self._next(start)) is not None:
                thing, start = found
                yield thing
        finally:
            self._data = self._data[start:]

    def _next(self, start: int) -> tuple[Line | Arrival, int] | None:
        data = self._data
        end = data.find(b"\r\n", start)
        if end < 0:
            if len(data) - start > LONGEST_LINE:
                raise CodecError("a line is too long")
            return None
        word, _, rest = data[start:end].partition(b" ")
        word = word.upper()
        if word not in (b"MSG", b"HMSG"):
            return Line(word, rest), end + 2
        parts = rest.split()
        numbers = 2 if word == b"HMSG" else 1
        if not 2 + numbers <= len(parts) <= 3 + numbers or not all(part.isdigit() for part in parts[-numbers:]):
            raise CodecError("a message has a broken line")
        total = int(parts[-1])
        head = int(parts[-2]) if numbers == 2 else 0
        if head > total or total > self._longest:
            raise CodecError("a message is too long")
        begin = end + 2
        if len(data) < begin + total + 2:
            return None
        if data[begin + total : begin + total + 2] != b"\r\n":
            raise CodecError("a message does not end where it should")
        reply = parts[2] if len(parts) == 3 + numbers else b""
        body = data[begin + head : begin + total]
        return Arrival(parts[0], data[begin : begin + head], body, reply), begin + total + 2
