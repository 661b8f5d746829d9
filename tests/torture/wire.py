"""As much of PostgreSQL's protocol as a proxy needs to see commits go by. Pure."""

from __future__ import annotations

from collections.abc import Iterator


class Frames:
    """Cuts a stream into messages: (type, all bytes). The first message of a client has no type."""

    def __init__(self, client: bool) -> None:
        self._bytes = bytearray()
        self._untyped = client

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The messages that are complete now; the rest waits for more."""
        self._bytes += data
        while True:
            head = 0 if self._untyped else 1
            if len(self._bytes) < head + 4:
                return
            length = head + int.from_bytes(self._bytes[head : head + 4])
            if len(self._bytes) < length:
                return
            whole = bytes(self._bytes[:length])
            del self._bytes[:length]
            yield (b"" if self._untyped else whole[:1]), whole
            self._untyped = False


def asks_commit(kind: bytes, whole: bytes) -> bool:
    """Whether a client asks for the end of its transaction with this message."""
    return kind in (b"P", b"Q") and b"COMMIT" in whole[5:32].upper()


def tells_commit(kind: bytes, whole: bytes) -> bool:
    """Whether the server says with this message that a transaction is committed."""
    return kind == b"C" and whole[5:].startswith(b"COMMIT")


def tells_rows(kind: bytes, whole: bytes) -> bool:
    """Whether a statement has returned rows; outside a transaction block it is committed once `is_idle` follows."""
    return kind == b"C" and whole[5:].startswith(b"SELECT")


def is_idle(kind: bytes, whole: bytes) -> bool:
    """Whether the server waits for the next statement, in no transaction."""
    return kind == b"Z" and whole[5:6] == b"I"
