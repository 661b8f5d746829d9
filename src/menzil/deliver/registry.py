"""Which protocols a worker can speak: the ones in this room, and those that installed packages bring along.

A package registers one by an entry point of the group `menzil.protocols`. Each is imported when a worker begins, if an
endpoint uses it then, or with the first message for it. So a worker needs only what its endpoints use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points

from menzil.deliver.protocol import Protocol, Surroundings

GROUP = "menzil.protocols"

#: Where the built-in ones are, as "module:object".
BUILT_IN = {
    "amqp": "menzil.deliver.amqp:Amqp",
    "http": "menzil.deliver.http:Http",
    "kafka": "menzil.deliver.kafka:Kafka",
    "mqtt": "menzil.deliver.mqtt:Mqtt",
    "nats": "menzil.deliver.nats:Nats",
    "redis": "menzil.deliver.redis:Redis",
}

Make = Callable[[Surroundings], Protocol]


class UnknownProtocolError(Exception):
    """This worker cannot deliver by that protocol; the text says why."""


class Protocols:
    """The protocols of one worker, made when they are first needed."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._made: dict[str, Protocol] = {}
        self._refused: dict[str, str] = {}

    def get(self, name: str) -> Protocol:
        """Return the protocol of that name."""
        found = self._made.get(name)
        if found is None:
            if name in self._refused:
                raise UnknownProtocolError(self._refused[name])
            try:
                found = self._made[name] = _find(name)(self._surroundings)
            except UnknownProtocolError as error:
                self._refused[name] = str(error)
                raise
            except Exception as error:
                # A missing extra, or a faulty package: its endpoints fail and are retried, the others go on.
                sentence = f"The protocol {name} cannot be used by this worker: {type(error).__name__}: {error}."
                self._refused[name] = sentence
                raise UnknownProtocolError(sentence) from error
        return found

    def refresh(self, surroundings: Surroundings) -> None:
        """Pass on new settings."""
        self._surroundings = surroundings
        for protocol in self._made.values():
            protocol.refresh(surroundings)

    async def close(self) -> None:
        """Let go of every connection."""
        made, self._made = list(self._made.values()), {}
        for protocol in made:
            await protocol.close()


def _find(name: str) -> Make:
    if name in BUILT_IN:
        module, _, thing = BUILT_IN[name].partition(":")
        make: Make = getattr(import_module(module), thing)
        return make
    for entry in entry_points(group=GROUP, name=name):
        brought: Make = entry.load()
        return brought
    known = ", ".join(sorted({*BUILT_IN, *(entry.name for entry in entry_points(group=GROUP))}))
    raise UnknownProtocolError(f"This worker does not know the protocol {name!r}; it knows {known}.")
