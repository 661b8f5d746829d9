"""The words of the table: what a stranger does, and which roles may wait for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wait:
    """Roles that may wait for a stranger until it ends: at these places, or at those that belong to it."""

    roles: tuple[str, ...]
    words: str
    places: tuple[str, ...] = ()


NOT_AT_ALL: tuple[Wait, ...] = ()
#: Its lanes are locked: consumers of the channel pass it over.
ITS_CHANNEL = (Wait(("lease",), "consumers of its own channel, until it ends"),)
ITS_ENDPOINT = (Wait(("deliver",), "deliveries of its own endpoint, until it ends"),)


@dataclass(frozen=True)
class Stranger:
    """A transaction that is left open, or a command that runs over and over.

    In its SQL {own} is a channel that belongs to it; {hook} an endpoint; {id} the endpoint's
    id; {gone} an endpoint that answers 410; {later}, {ended} and {dead} are messages of its channel; {n} is a
    number of its own.
    """

    name: str
    sql: tuple[str, ...] = ()
    role: str = "admin"
    isolation: str = "read committed"
    before: tuple[str, ...] = ()  # committed before it begins, by the owner
    then: tuple[str, ...] = ()  # committed by the owner while it is open
    again: str = ""  # repeated inside the open transaction
    loop: bool = False  # each of its statements is a transaction of its own, one after the other, over and over
    prepared: bool = False  # prepared for a two-phase commit, and its session is gone
    dump: bool = False  # a real pg_dump whose reader has stopped reading
    after: tuple[str, ...] = ()  # by the owner when it has ended
    waits: tuple[Wait, ...] = NOT_AT_ALL
    holds_lanes: bool = False  # which ones is looked up while it is open: those may wait, no other
    rests: bool = False  # its channel is paused before and after: the crowd leaves it alone

    def uses(self, word: str) -> bool:
        return any("{" + word + "}" in text for text in (*self.before, *self.sql, *self.then, self.again))


@dataclass(frozen=True)
class Group:
    """Strangers of one kind."""

    title: str
    strangers: tuple[Stranger, ...]
    alone: bool = False
