"""A lease in this worker's hands, from the answer of a dequeue until its outcome is known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from menzil.model.message import Message
from menzil.model.outcome import Outcome

if TYPE_CHECKING:
    from menzil.worker.source import Source


class Held:
    """One message under lease.

    `taken_at` is the monotonic time before its lease was asked for, `kept_at` that before the last heartbeat.
    """

    __slots__ = (
        "attempt",
        "batch",
        "channel",
        "id",
        "kept_at",
        "lost",
        "message",
        "outcome",
        "source",
        "stopped",
        "taken_at",
        "task",
        "trace",
        "uncertain",
    )

    def __init__(self, message: Message, source: Source, kept_at: float) -> None:
        self.message = message
        self.id = message.id
        self.attempt = message.attempt
        self.batch = message.batch
        self.channel = message.channel
        self.source = source
        self.taken_at = self.kept_at = kept_at
        self.task: asyncio.Task[None] | None = None  # who delivers it now
        self.stopped = False  # its delivery was told to stop
        self.lost = False  # the lease is gone: whatever comes out is dropped
        self.outcome: Outcome | None = None
        self.trace: str | None = None  # for the log, of a delivery that raised
        self.uncertain = False  # its outcome was sent, and the answer never came

    @property
    def ends_at(self) -> float:
        """When the lease ends, at the earliest."""
        return self.kept_at + self.source.lease
