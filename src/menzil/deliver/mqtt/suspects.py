"""Messages that were under way when a server closed the connection.

Closing it is the only way in which MQTT 3.1.1 refuses a message, and it hits all that are under way. So these go one at
a time from then on: the innocent arrive. A message at which the server closes the connection twice although it was
alone, and which took other messages in between, is to blame.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Messages that are remembered, of one endpoint.
MOST = 10_000


class Suspects:
    """Those of one endpoint."""

    def __init__(self) -> None:
        self._known: dict[int, int | None] = {}  # acknowledgements until it ended a connection alone, if it did
        self._acknowledged = 0

    def __contains__(self, message_id: int) -> bool:
        return message_id in self._known

    def is_worse(self, message_id: int) -> bool:
        """Whether a connection ended at this one alone: it goes after the others, or they would wait for ever."""
        return self._known.get(message_id) is not None

    def suspect(self, ids: Iterable[int]) -> None:
        """These were under way together."""
        for message_id in ids:
            self._known.setdefault(message_id, None)
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def was_alone(self, message_id: int) -> bool:
        """This one was alone when the connection was closed. Return whether it is to blame."""
        before = self._known.get(message_id)
        if before is not None and self._acknowledged > before:
            del self._known[message_id]
            return True
        if before is None:
            self.suspect([message_id])
            self._known[message_id] = self._acknowledged
        return False

    def acknowledged(self, message_id: int) -> None:
        """The server took it."""
        self._acknowledged += 1
        self._known.pop(message_id, None)
