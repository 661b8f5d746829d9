"""RESP2, the protocol of Redis and Valkey: commands out, replies in. Longer replies than we ask for are refused."""

from __future__ import annotations

from collections.abc import Iterator

from menzil.deliver.broker.session import CodecError

#: Bytes of one text, items of one list, lists inside of lists, and bytes of a reply in all.
LONGEST, WIDEST, DEEPEST, MOST = 65536, 64, 4, 262144


class ReplyError(Exception):
    """A reply that is an error. The first word says which."""

    @property
    def word(self) -> str:
        """Return the first word."""
        return str(self).partition(" ")[0]


Reply = bytes | int | None | ReplyError | list["Reply"]


def command(*parts: bytes) -> bytes:
    """Return one command."""
    return b"*%d\r\n" % len(parts) + arguments(parts)


def arguments(parts: tuple[bytes, ...] | list[bytes]) -> bytes:
    """Return some of the parts of a command."""
    return b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts])


class Replies:
    """Reads replies from bytes that come in pieces."""

    def __init__(self, longest: int = LONGEST, widest: int = WIDEST, most: int = MOST, deepest: int = DEEPEST) -> None:
        self._data = b""
        self._bounds = longest, widest
        self._most = most
        self._deepest = deepest

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of what came before."""
        return not self._data

    def feed(self, data: bytes) -> Iterator[Reply]:
        """Yield the replies that are complete. Those before a broken one count."""
        data = self._data + data if self._data else data
        start = 0
        try:
            while (found := _reply(data, start, self._deepest, self._bounds)) is not None:
                reply, start = found
                yield reply
            if len(data) - start > self._most:
                raise CodecError("a reply is too long")
        finally:
            self._data = data[start:]


def _reply(data: bytes, start: int, depth: int, bounds: tuple[int, int]) -> tuple[Reply, int] | None:
    """Return the reply that begins here and where it ends; None when it is not complete."""
    end = data.find(b"\r\n", start)
    if end < 0:
        if len(data) - start > LONGEST:
            raise CodecError("a line is too long")
        return None
    kind, line, after = data[start : start + 1], data[start + 1 : end], end + 2
    if kind == b"$":
        size = _number(line)
        if size == -1:
            return None, after
        if not 0 <= size <= bounds[0]:
            raise CodecError("a reply is too long")
        if len(data) < after + size + 2:
            return None
        if data[after + size : after + size + 2] != b"\r\n":
            raise CodecError("a text does not end where it should")
        return data[after : after + size], after + size + 2
    if kind == b":":
        return _number(line), after
    if kind == b"+":
        return line, after
    if kind == b"-":
        return ReplyError(line.decode("utf-8", "replace")), after
    if kind == b"*":
        return _list(data, _number(line), after, depth, bounds)
    raise CodecError("a reply begins with no known sign")


def _list(data: bytes, count: int, start: int, depth: int, bounds: tuple[int, int]) -> tuple[Reply, int] | None:
    if count == -1:
        return None, start
    if not 0 <= count <= bounds[1] or not depth:
        raise CodecError("a list is too long")
    items: list[Reply] = []
    for _ in range(count):
        found = _reply(data, start, depth - 1, bounds)
        if found is None:
            return None
        items.append(found[0])
        start = found[1]
    return items, start


def _number(line: bytes) -> int:
    if not line.removeprefix(b"-").isdigit() or len(line) > 20:
        raise CodecError("a number is none")
    return int(line)
