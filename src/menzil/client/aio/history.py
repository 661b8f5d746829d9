"""Dead letters and the archive."""

from __future__ import annotations

from datetime import datetime

from menzil.client.base import AsyncClient
from menzil.ops import history as ops
from menzil.ops import origins, sweeping
from menzil.ops.borrow import AsyncBorrowed
from menzil.ops.op import Op
from menzil.ops.origins import Origins
from menzil.ops.records import Record


class AsyncHistory(AsyncClient):
    """What has ended: redrive it, replay it, clean it up."""

    async def _once_more(
        self,
        how: str,
        op: Op[int],
        conn: AsyncBorrowed | None,
        origin: Origins | None = None,
        channel: str | None = None,
    ) -> int:
        """Run a redrive or a replay, in a span that links to where the message came from, if it is one message."""
        spans = self._spans()
        if spans is None:
            return await self._run(op, conn)
        found = None
        if origin is not None and await self._run(origin.readable, conn):
            found = await self._run(origin.look, conn)
        with spans.again(how, channel, found) as sending:
            return sending.sent(await self._run(op, conn), self._where(conn))

    async def redrive_message(self, dlq_id: int, *, conn: AsyncBorrowed | None = None) -> int:
        """Send a dead letter once more, by its id in the list; return the id of the new message."""
        return await self._once_more("redrive", ops.redrive_message(dlq_id), conn, origins.of_dead_letter(dlq_id))

    async def redrive_take_back(self, dlq_id: int, *, conn: AsyncBorrowed | None = None) -> bool:
        """Cancel the message of a redrive and let its dead letter be failed again; False if that comes too late."""
        return await self._run(ops.redrive_take_back(dlq_id), conn)

    async def redrive_endpoint(
        self, name: str, *, cause: str | None = None, limit: int | None = None, conn: AsyncBorrowed | None = None
    ) -> int:
        """Send the dead letters of an endpoint or channel once more, all or of one cause; return how many."""
        return await self._once_more("redrive", ops.redrive_endpoint(name, cause, limit), conn, channel=name)

    async def redrive_all(self, *, conn: AsyncBorrowed | None = None) -> int:
        """Send all dead letters once more, but for channels that take no messages; return how many."""
        return await self._once_more("redrive", ops.redrive_all(), conn)

    async def dlq_summary(self, *, conn: AsyncBorrowed | None = None) -> list[Record]:
        """Count dead letters by endpoint."""
        return await self._run(ops.dlq_summary(), conn)

    async def dlq_causes(
        self, name: str | None = None, limit: int = 100, *, conn: AsyncBorrowed | None = None
    ) -> list[Record]:
        """Group the dead letters that wait for a decision by what went wrong, the most frequent first."""
        return await self._run(ops.dlq_causes(name, limit), conn)

    async def replay_message(self, message_id: int, *, conn: AsyncBorrowed | None = None) -> int:
        """Send an ended message once more; return the id of the new one."""
        return await self._once_more("replay", ops.replay_message(message_id), conn, origins.of_ended(message_id))

    async def replay_range(
        self,
        endpoint_id: int,
        start: datetime,
        end: datetime,
        *,
        status: str | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        conn: AsyncBorrowed | None = None,
    ) -> int:
        """Send once more what was created in [start, end), `rate` per second; return how many, or would be."""
        op = ops.replay_range(endpoint_id, start, end, status=status, dry_run=dry_run, rate=rate)
        return await (self._run(op, conn) if dry_run else self._once_more("replay", op, conn))

    async def cleanup_dlq(self, limit: int = 10_000, *, conn: AsyncBorrowed | None = None) -> int:
        """Delete dead letters that are older than the setting dlq_retention_days; return how many."""
        return await self._run(sweeping.dead_letters(limit), conn)

    async def cleanup_attempts(self, limit: int = 10_000, *, conn: AsyncBorrowed | None = None) -> int:
        """Delete tries that are older than the archive; return how many."""
        return await self._run(sweeping.attempts(limit), conn)

    async def cleanup_event_log(self, limit: int = 10_000, *, conn: AsyncBorrowed | None = None) -> int:
        """Delete lines of the event log that are older than their setting; return how many."""
        return await self._run(sweeping.event_log(limit), conn)

    async def cleanup_old_archive_partitions(
        self, retention_months: int | None = None, *, conn: AsyncBorrowed | None = None
    ) -> int:
        """Drop months of the archive that are older than that, or than their setting; return how many."""
        return await self._run(ops.cleanup_old_archive_partitions(retention_months), conn)
