# Written by tools/twins.py from ../aio/channels.py. Change that file, then run: python tools/twins.py
"""Channels."""

from __future__ import annotations

from menzil.client.base import Client
from menzil.model.durations import Seconds
from menzil.ops import channels as ops
from menzil.ops.borrow import Borrowed


class Channels(Client):
    """The unit of scheduling. All of these accept endpoints too."""

    def channel_set(
        self,
        name: str,
        *,
        max_concurrency: int | None = None,
        max_size: int | None = None,
        release_interval: Seconds = 0,
        release_count: int = 1,
        on_dead: str = "continue",
        conn: Borrowed | None = None,
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
        self._run(op, conn)

    def channel_pause(self, name: str, *, conn: Borrowed | None = None) -> None:
        """Hold its messages; it still takes new ones."""
        self._run(ops.channel_pause(name), conn)

    def channel_resume(self, name: str, *, conn: Borrowed | None = None) -> None:
        """Let its messages go again."""
        self._run(ops.channel_resume(name), conn)

    def channel_release(self, name: str, *, conn: Borrowed | None = None) -> None:
        """Take no new messages, drain what is there, then disappear."""
        self._run(ops.channel_release(name), conn)

    def channel_purge(self, name: str, *, conn: Borrowed | None = None) -> int:
        """Cancel everything that waits in it; return how many."""
        return self._run(ops.channel_purge(name), conn)
