"""Where a message stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Status:
    """One message, alive or ended; `status` is pending, processing, completed, failed, expired or cancelled."""

    id: int
    status: str
    channel: str
    attempts: int
    retry_count: int
    last_error: str | None
    created_at: datetime
    scheduled_at: datetime | None
    next_retry_at: datetime | None
    unlock_at: datetime | None
    expires_at: datetime | None
    ended_at: datetime | None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to this message."""
        return self.ended_at is not None
