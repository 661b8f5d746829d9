"""Single messages."""

from __future__ import annotations

from menzil.client.base import AsyncClient
from menzil.model.message import Message
from menzil.model.status import Status
from menzil.ops import messages as ops
from menzil.ops.borrow import AsyncBorrowed


class AsyncMessages(AsyncClient):
    """One message by its id, or a look at the next ones."""

    async def status(self, message_id: int, *, conn: AsyncBorrowed | None = None) -> Status:
        """Where the message stands, alive or ended."""
        return await self._run(ops.status(message_id), conn)

    async def peek(self, channel: str, limit: int = 10, *, conn: AsyncBorrowed | None = None) -> list[Message]:
        """Look at the next messages of a channel without taking them."""
        return await self._run(ops.peek(channel, limit, loads=self._loads), conn)

    async def cancel(self, message_id: int, *, conn: AsyncBorrowed | None = None) -> bool:
        """End a message that waits; False when it is too late, in flight or ended."""
        return await self._run(ops.cancel(message_id), conn)

    async def retry_now(self, message_id: int, *, conn: AsyncBorrowed | None = None) -> bool:
        """Make a message that waits for its retry due now; False when it does not wait."""
        return await self._run(ops.retry_now(message_id), conn)
