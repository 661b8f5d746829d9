"""Client ids: one for each connection of an endpoint in this worker, and the same for the connection that follows.

A server that gets a second connection with an id throws the first one out. So bytes that hang on a connection which
was given up are worth nothing once its id is connected again: they cannot arrive after the retry. This holds only if
nothing is sent before every such id is connected again, on whichever connection the retry will go.
"""

from __future__ import annotations

import asyncio


class Slots:
    """The connections of one endpoint, by number."""

    def __init__(self, beginning: str) -> None:
        self.beginning = beginning  # of the client id; no other worker has it
        self._taken: set[int] = set()
        self._given_up: set[int] = set()  # with messages that were not acknowledged
        self.sweep = asyncio.Lock()

    def client_id(self, slot: int) -> str:
        """Return the id of a connection."""
        return f"{self.beginning}-{slot}"

    def take(self) -> int:
        """Take the lowest number that is free."""
        slot = next(number for number in range(len(self._taken) + 1) if number not in self._taken)
        self._taken.add(slot)
        return slot

    def take_given_up(self) -> int | None:
        """Take a number whose last connection may still have bytes under way."""
        for slot in self._given_up - self._taken:
            self._taken.add(slot)
            return slot
        return None

    def connected(self, slot: int) -> None:
        """The server knows the new connection, and has thrown out the old one."""
        self._given_up.discard(slot)

    def free(self, slot: int, *, unacknowledged: bool) -> None:
        """The connection is closed."""
        self._taken.discard(slot)
        if unacknowledged:
            self._given_up.add(slot)
