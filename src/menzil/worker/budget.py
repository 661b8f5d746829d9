"""How many bytes of messages a worker holds: a lease is bounded in messages, and messages may be large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

#: How much of the last estimate is left when messages become smaller.
_DECAY = 0.7


class Weighed(Protocol):
    """A message, or what holds one."""

    @property
    def size(self) -> int:
        """Bytes of its body."""
        ...


class Budget:
    """Bytes of the bodies of all messages in the hands of one worker."""

    def __init__(self, most: int, largest: int) -> None:
        """`largest` is how large a message may be: a worker that has seen none yet is careful."""
        self.most = most
        self.held = 0
        self._expected = float(max(1, largest))  # bytes of the next message, as far as is known

    def enter(self, messages: Sequence[Weighed]) -> None:
        """These were leased."""
        if not messages:
            return
        size = sum([message.size for message in messages])
        self.held += size
        self._expected = max(1.0, size / len(messages), self._expected * _DECAY)

    def leave(self, message: Weighed) -> None:
        """This one is out of our hands."""
        self.held -= message.size

    def leave_all(self, messages: Sequence[Weighed]) -> int:
        """These are out of our hands; return their bytes."""
        size = sum([message.size for message in messages])
        self.held -= size
        return size

    @property
    def free(self) -> int:
        """Bytes that are left; below 0 where messages were larger than expected."""
        return self.most - self.held

    def room(self, within: float | None = None) -> int:
        """How many more messages fit, if they are like the last ones: into what is free, or into a part of that.

        Where one fits into all of it, the part has room for one, too.
        """
        fits = max(0, int(self.free / self._expected))
        return fits if within is None else max(min(1, fits), int(within / self._expected))
