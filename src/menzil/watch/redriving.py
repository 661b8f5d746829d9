"""Which dead letters a redrive of an endpoint or a cause would send once more, and how it goes on in chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from menzil.model.errors import DisabledError
from menzil.ops import history
from menzil.watch.finding import Run

#: Dead letters of one statement, which is also one transaction.
CHUNK = 1_000

#: Causes that a plan distinguishes.
MOST_CAUSES = 10_000


def groups(run: Run, endpoint: str | None = None, cause: str | None = None) -> list[dict[str, Any]]:
    """What would be redriven, by endpoint: [{"endpoint", "messages", "oldest", "newest"}]."""
    found: dict[str, dict[str, Any]] = {}
    for row in run(history.dlq_causes(endpoint, MOST_CAUSES)):
        if cause is not None and row["cause"] != cause:
            continue
        group = found.setdefault(row["endpoint_name"], {"endpoint": row["endpoint_name"], "messages": 0})
        group["messages"] += row["failed_count"]
        group["oldest"] = min(group.get("oldest", row["oldest_failed_at"]), row["oldest_failed_at"])
        group["newest"] = max(group.get("newest", row["newest_failed_at"]), row["newest_failed_at"])
    return sorted(found.values(), key=lambda group: str(group["endpoint"]))


def redrive(
    run: Run,
    group: dict[str, Any],
    cause: str | None,
    moved: Callable[[int], None],
    closed: Callable[[DisabledError], None] | None = None,
) -> None:
    """Redrive the letters of one group, oldest first; `moved` is told after each chunk.

    `closed` is told of an endpoint that takes no messages; without it that is an error. A letter that dies again while
    this runs is another dead letter: the plan is the most that is moved.
    """
    left = group["messages"]
    try:
        while left > 0 and (number := run(history.redrive_endpoint(group["endpoint"], cause, min(left, CHUNK)))):
            left -= number
            moved(number)
    except DisabledError as error:
        if closed is None:
            raise
        closed(error)
