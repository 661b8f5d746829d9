"""A position of Kafka: the offset of the next record, and behind # the record taken last, by which the topic is known.

A topic that was deleted and made again has the same offsets for other records. Brokers tell the id of a topic only in
newer versions and only to some requests, so the bridge reads the record again that it took last, and compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading goes on."""

    offset: int
    seen: tuple[int, str] | None = None  # offset and digest of the record that was taken last; it is before `offset`

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a position. One that people gave, or that no record came before, has no digest."""
        number, _, mark = text.partition("#")
        at, _, digest = mark.partition(".")
        return cls(int(number), (int(at), digest) if digest else None)

    def __str__(self) -> str:
        return str(self.offset) if self.seen is None else f"{self.offset}#{self.seen[0]}.{self.seen[1]}"

    def after(self, message: Any) -> Place:
        """Return the place behind a record."""
        offset = message.offset()
        return Place(offset + 1, (offset, digest(message)))


def digest(message: Any) -> str:
    """Return what tells a record from another one at the same offset."""
    found = blake2b(repr(message.timestamp()).encode(), digest_size=8)
    for part in (message.key(), message.value()):
        found.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return found.hexdigest()
