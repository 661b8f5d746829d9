"""Messages that die: how tests of dead letters come by theirs."""

from __future__ import annotations

from typing import Any

from tests.sql.queue import Queue

REFUSED = "[PERMANENT] HTTP 422 Unprocessable Entity: no"


def die(queue: Queue, channel: str = "work", error: str = REFUSED, **options: Any) -> int:
    """Send one message to a channel that has no other, let it fail for good, and return its id."""
    sent = queue.send(channel, **options)
    (message,) = queue.dequeue(1, [channel])
    assert message.id == sent
    assert queue.fail(message, error) == "dead"
    return sent


def letter(queue: Queue, message: int) -> Any:
    """The dead letter of this message."""
    return queue.one("select * from menzil.dlq where original_message_id = %s", message)


def events(queue: Queue, kind: str) -> list[Any]:
    return queue.all("select * from menzil.event_log where event_type = %s order by id", kind)
