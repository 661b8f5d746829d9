"""Which message a delivery tag stands for. The server numbers what is published on a channel, from 1."""

from __future__ import annotations

from collections.abc import Iterator

from menzil.deliver.amqp.frames import Confirm
from menzil.deliver.broker.session import CodecError


class Tags:
    """The tags of one batch after the other on one channel."""

    def __init__(self) -> None:
        self.last = 0  # tag of the last message that was encoded
        self.begin()

    def begin(self) -> None:
        """Begin a batch. Tags of the batches before stand for nothing any more."""
        self._first = self.last + 1
        self._low = 0  # all messages before this one are confirmed
        self._written = 0
        self._places: list[int] = []  # in the batch
        self._sizes: list[int] = []  # of bodies

    def add(self, place: int, size: int) -> None:
        """Give the next tag to a message."""
        self.last += 1
        self._places.append(place)
        self._sizes.append(size)

    def wrote(self) -> None:
        """All that have a tag are handed to the connection."""
        self._written = len(self._places)

    @property
    def latest(self) -> int:
        """The position of the message with the last tag."""
        return self._places[-1]

    def named_by(self, confirm: Confirm) -> Iterator[tuple[int, int]]:
        """Yield tags and positions of the messages that a confirm is about. Raises CodecError."""
        if confirm.tag > self.last or not (confirm.tag or confirm.multiple):
            raise CodecError("a confirm names a message that was not sent")
        end = confirm.tag - self._first + 1 if confirm.tag else len(self._places)
        if end <= 0:
            return  # of an earlier batch
        begin = self._low if confirm.multiple else end - 1
        if confirm.multiple:
            self._low = max(self._low, end)
        for number in range(begin, end):
            yield self._first + number, self._places[number]

    def written(self) -> dict[int, int]:
        """Return positions and sizes of the messages that were handed to the connection."""
        return dict(zip(self._places[: self._written], self._sizes, strict=False))
