"""A lease in this worker's hands, from the answer of a dequeue until its outcome is known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from menzil.model.message import Message
from menzil.model.outcome import Outcome
from menzil.telemetry.trace_ids import trace_id_of

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

    from menzil.worker.batches import Line
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
        "line",
        "lost",
        "message",
        "outcome",
        "size",
        "source",
        "span",
        "stopped",
        "taken_at",
        "task",
        "trace",
        "trace_id",
        "uncertain",
        "untold",
    )

    def __init__(self, message: Message, source: Source, kept_at: float) -> None:
        self.message = message
        self.id, self.attempt, self.batch, self.channel, self.size = message.taken
        self.source = source
        self.taken_at = self.kept_at = kept_at
        self.task: asyncio.Task[None] | None = None  # who delivers it now
        self.line: Line | None = None  # where it waits for a batch, or is in one; then no task delivers it alone
        self.stopped = False  # its delivery was told to stop
        self.lost = False  # the lease is gone: its outcome is dropped
        self.outcome: Outcome | None = None
        self.trace: str | None = None  # for the log, of a delivery that raised
        self.span: SpanContext | None = None  # of its delivery, where deliveries are traced
        self.trace_id: str | None = None  # for the log, see note_trace
        self.untold = False  # it failed in a batch, and the database does not know yet
        self.uncertain = False  # its outcome was sent, and the answer never came

    def facts(self) -> dict[str, Any]:
        """What an event about this message says."""
        return {"channel": self.channel, "id": self.id, "attempt": self.attempt, "trace_id": self.trace_id}

    def note_trace(self) -> None:
        """Keep the trace for the log while the message is still here: that of the delivery, or of the sender."""
        self.trace_id = trace_id_of(self.message) if self.span is None else f"{self.span.trace_id:032x}"

    def await_settle(self) -> None:
        """Nothing of its endpoint is leased until the database knows that it failed."""
        if self.line is not None:
            self.untold = True
            self.line.untold += 1

    def told(self) -> None:
        """The database knows what came out, or never will."""
        if self.untold and self.line is not None:
            self.untold = False
            self.line.untold -= 1

    @property
    def ends_at(self) -> float:
        """When the lease ends, at the earliest."""
        return self.kept_at + self.source.lease
