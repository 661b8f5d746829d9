"""Settings and housekeeping."""

from __future__ import annotations

from menzil.client.base import AsyncClient
from menzil.ops import upkeep as ops
from menzil.ops.borrow import AsyncBorrowed


class AsyncUpkeep(AsyncClient):
    """Settings, and the jobs that otherwise a worker does."""

    async def setting(self, name: str, *, conn: AsyncBorrowed | None = None) -> str:
        """The value of a setting, as text."""
        return await self._run(ops.setting(name), conn)

    async def set_setting(self, name: str, value: str | float | bool, *, conn: AsyncBorrowed | None = None) -> None:
        """Change a setting for all sessions, at once."""
        await self._run(ops.set_setting(name, value), conn)

    async def maintain(self, *, conn: AsyncBorrowed | None = None) -> None:
        """Do once what the queue needs to go on: recover, expire, promote, forget old keys."""
        await self._run(ops.maintain(), conn)

    async def mark_expired(self, limit: int = 1000, *, conn: AsyncBorrowed | None = None) -> int:
        """End messages whose expiry has passed; return how many."""
        return await self._run(ops.mark_expired(limit), conn)

    async def recover_stale(self, limit: int = 1000, *, conn: AsyncBorrowed | None = None) -> int:
        """Take back messages whose lease ran out; return how many."""
        return await self._run(ops.recover_stale(limit), conn)

    async def maintain_archive_partitions(self, months_ahead: int = 3, *, conn: AsyncBorrowed | None = None) -> int:
        """Create the partitions of the coming months; return how many were missing."""
        return await self._run(ops.maintain_archive_partitions(months_ahead), conn)
