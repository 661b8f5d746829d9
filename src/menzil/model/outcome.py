"""What became of a message in the hands of a consumer, and what the database said to that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from menzil.model.durations import Seconds

#: What the other side answered, for people to read: status, duration_ms, body, headers.
Response: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Complete:
    """It is done."""

    response: Response | None = None


@dataclass(frozen=True, slots=True)
class Defer:
    """Not done, not failed: come back after `seconds` or at `until`, or in line from now. Costs no retry.

    `state` is what the next try finds in `message.state`; None keeps what is there.
    """

    seconds: Seconds | None = None
    until: datetime | None = None
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """It went wrong.

    `retry` True leaves the delay to the retry policy, a number of seconds or a timedelta is the delay, False gives up
    now and makes the message a dead letter. `disable` says that the destination is gone: it gives up, and an endpoint
    whose config has auto_disable_on_gone takes no more messages. `rest` says that the endpoint asks to be left alone
    for the seconds of `retry`, with all its messages; None leaves it to the reason, where "HTTP 429" and "HTTP 503" ask
    for that. A message to an endpoint then waits for the longer of these seconds and the delay of the retry policy.
    """

    reason: str
    retry: bool | Seconds = True
    disable: bool = False
    response: Response | None = None
    rest: bool | None = None


#: What a handler returns, and a protocol's deliver.
Outcome: TypeAlias = Complete | Defer | Fail


class Settlement(StrEnum):
    """The database's answer for one lease; a str, so it prints and compares as the word the database said."""

    SETTLED = "settled"
    STALE = "stale"
    UNKNOWN = "unknown"
    RETRY = "retry"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class LeaseOutcome:
    """The answer for one lease of a batch."""

    id: int
    outcome: Settlement

    @property
    def ok(self) -> bool:
        """Whether the call did what it was asked: the lease was still ours."""
        return self.outcome not in (Settlement.STALE, Settlement.UNKNOWN)
