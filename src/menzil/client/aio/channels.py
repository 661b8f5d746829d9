"""Channels."""

from __future__ import annotations

from menzil.client.base import AsyncClient
from menzil.model.durations import Seconds
from menzil.ops import channels as ops
from menzil.ops.borrow import AsyncBorrowed


class AsyncChannels(AsyncClient):
    """The unit of scheduling. All of these accept endpoints too."""

    async def channel_set(
        self,
        name: str,
        *,
        max_concurrency: int | None = None,
        max_size: int | None = None,
        release_interval: Seconds = 0,
        release_count: int = 1,
        on_dead: str = "continue",
        conn: AsyncBorrowed | None = None,
    ) -> None:
        """Create a channel, or change its limits while it runs; None is unlimited.

        At most `release_count` messages leave it per `release_interval` seconds. After a dead letter the rest of its
        ordering key goes on (`on_dead="continue"`) or waits for a decision (`"block"`).
        """
        op = ops.channel_set(
            name,
            max_concurrency=max_concurrency,
            max_size=max_size,
            release_interval=release_interval,
            release_count=release_count,
            on_dead=on_dead,
        )
        await self._run(op, conn)

    async def channel_pause(self, name: str, *, conn: AsyncBorrowed | None = None) -> None:
        """Hold its messages; it still takes new ones."""
        await self._run(ops.channel_pause(name), conn)

    async def channel_resume(self, name: str, *, conn: AsyncBorrowed | None = None) -> None:
        """Let its messages go again."""
        await self._run(ops.channel_resume(name), conn)

    async def channel_release(self, name: str, *, conn: AsyncBorrowed | None = None) -> None:
        """Take no new messages, drain what is there, then disappear."""
        await self._run(ops.channel_release(name), conn)

    async def channel_purge(self, name: str, *, conn: AsyncBorrowed | None = None) -> int:
        """Cancel everything that waits in it; return how many."""
        return await self._run(ops.channel_purge(name), conn)
