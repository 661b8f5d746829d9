"""What may be said about a message: when sending it, and when handing a lease back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypedDict
from uuid import UUID

from menzil.model.durations import Seconds


class SendOptions(TypedDict, total=False):
    """Everything a send may add to a name and a payload. Times have a zone; durations are seconds or timedeltas."""

    priority: int
    delay: Seconds | None
    scheduled_at: datetime | None
    expires_in: Seconds | None
    expires_at: datetime | None
    ordering_key: str | None
    idempotency_key: str | None
    correlation_id: UUID | str | None
    headers: dict[str, str] | None
    metadata: dict[str, Any] | None


class ScheduleOptions(TypedDict, total=False):
    """What each message of a schedule carries."""

    time_zone: str
    priority: int
    ordering_key: str | None
    expires_after: Seconds | None
    headers: dict[str, str] | None
    metadata: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Send:
    """One message of send_many."""

    channel: str
    payload: Any
    priority: int = 0
    delay: Seconds | None = None
    scheduled_at: datetime | None = None
    expires_in: Seconds | None = None
    expires_at: datetime | None = None
    ordering_key: str | None = None
    idempotency_key: str | None = None
    correlation_id: UUID | str | None = None
    headers: dict[str, str] | None = None
    metadata: dict[str, Any] | None = None


class Leased(Protocol):
    """An object that carries the fencing token: a Message, or a Lease kept elsewhere."""

    @property
    def id(self) -> int: ...
    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Lease:
    """The fencing token of a message without its body, for programs that pass it on."""

    id: int
    attempt: int
