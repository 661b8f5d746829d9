"""Plans as tests of them make and run them."""

from __future__ import annotations

from typing import Any

from psycopg.types.json import Jsonb

from tests.sql.queue import Queue


def plan(queue: Queue, number: int) -> Any:
    """The plan as the view shows it."""
    return queue.one("select * from menzil.plans where id = %s", number)


def draft(queue: Queue, kind: str, rate: float | None = None, key: str | None = None, **where: Any) -> int:
    """Make a plan and leave it at that."""
    return queue.call("plan_create", kind, Jsonb(where), rate, p_key=key)


def running(queue: Queue, kind: str, rate: float | None = None, **where: Any) -> int:
    """Make a plan and let it run."""
    number = draft(queue, kind, rate, **where)
    queue.call("plan_run", number)
    return number


def finish(queue: Queue, number: int, limit: int = 1000) -> int:
    """Step by hand until there is nothing left to do; return how many messages that was."""
    total = 0
    for _ in range(100):
        total += queue.call("plan_step", number, limit)
        left = queue.one("select count(*) from menzil.plan_channel where plan_id = %s and not finished", number)
        if left == 0 or plan(queue, number).status != "running":
            return total
    raise AssertionError(f"the plan does not end: {plan(queue, number)}")


def outcome(queue: Queue, number: int) -> dict[str, int]:
    """What has become of the messages it made."""
    return dict(queue.rows("plan_outcome", number))


def complete_all(queue: Queue, channel: str = "work", count: int = 1000) -> list[int]:
    """Send so many messages and complete them."""
    sent = queue.send_batch(channel, count)
    queue.complete(*queue.dequeue(count, [channel]))
    return sent


def kill_all(
    queue: Queue, channel: str = "work", count: int = 10, error: str = "[PERMANENT] no", **options: Any
) -> list[int]:
    """Send so many messages and let each of them die; return their ids."""
    sent = [queue.send(channel, **options) for _ in range(count)] if options else queue.send_batch(channel, count)
    for message in queue.dequeue(count, [channel]):
        assert queue.fail(message, error) == "dead"
    return sent


def failed(queue: Queue) -> list[int]:
    """Messages whose dead letters wait for a decision."""
    return [
        row[0] for row in queue.all("select original_message_id from menzil.dlq where status = 'failed' order by 1")
    ]


def copies(queue: Queue, column: str = "redrive_of") -> list[int]:
    """Which messages those that wait repeat, in the order of their ids."""
    return [row[0] for row in queue.all(f"select {column} from menzil.queue where {column} is not null order by id")]
