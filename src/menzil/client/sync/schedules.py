# Written by tools/twins.py from ../aio/schedules.py. Change that file, then run: python tools/twins.py
"""Schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Unpack

from menzil.client.base import Client
from menzil.model.options import ScheduleOptions
from menzil.ops import schedules as ops
from menzil.ops.borrow import Borrowed


class Schedules(Client):
    """Messages that repeat. Each slot fires once, however many workers fire it."""

    def schedule_create(
        self,
        name: str,
        cron: str,
        channel: str,
        payload: Any,
        *,
        conn: Borrowed | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> int:
        """Send `payload` to `channel` whenever `cron` says; return the id of the schedule.

        Options: time_zone (of the cron expression; UTC), priority, ordering_key, expires_after (seconds), headers,
        metadata.
        """
        return self._run(ops.schedule_create(name, cron, channel, payload, dumps=self._dumps, **options), conn)

    def schedule_drop(self, name: str, *, conn: Borrowed | None = None) -> None:
        """Forget the schedule; messages it sent stay."""
        self._run(ops.schedule_drop(name), conn)

    def schedule_pause(self, name: str, *, conn: Borrowed | None = None) -> None:
        """Send nothing until it is resumed."""
        self._run(ops.schedule_pause(name), conn)

    def schedule_resume(self, name: str, *, conn: Borrowed | None = None) -> None:
        """Go on with the next slot."""
        self._run(ops.schedule_resume(name), conn)

    def schedule_fire_due(self, limit: int = 100, *, conn: Borrowed | None = None) -> int:
        """Fire what is due now; return how many. Consumers do this by themselves."""
        return self._run(ops.schedule_fire_due(limit), conn)

    def cron_next(self, cron: str, time_zone: str, after: datetime, *, conn: Borrowed | None = None) -> datetime:
        """The first slot of a cron expression after a point in time."""
        return self._run(ops.cron_next(cron, time_zone, after), conn)
