# Written by tools/twins.py from ../aio/messages.py. Change that file, then run: python tools/twins.py
"""Single messages."""

from __future__ import annotations

from menzil.client.base import Client
from menzil.model.message import Message
from menzil.model.status import Status
from menzil.ops import messages as ops
from menzil.ops.borrow import Borrowed


class Messages(Client):
    """One message by its id, or a look at the next ones."""

    def status(self, message_id: int, *, conn: Borrowed | None = None) -> Status:
        """Where the message stands, alive or ended."""
        return self._run(ops.status(message_id), conn)

    def peek(self, channel: str, limit: int = 10, *, conn: Borrowed | None = None) -> list[Message]:
        """Look at the next messages of a channel without taking them."""
        return self._run(ops.peek(channel, limit, loads=self._loads), conn)

    def cancel(self, message_id: int, *, conn: Borrowed | None = None) -> bool:
        """End a message that waits; False when it is too late, in flight or ended."""
        return self._run(ops.cancel(message_id), conn)

    def retry_now(self, message_id: int, *, conn: Borrowed | None = None) -> bool:
        """Make a message that waits for its retry due now; False when it does not wait."""
        return self._run(ops.retry_now(message_id), conn)
