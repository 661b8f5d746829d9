"""The sources by their names. A module is imported when a bridge needs it: one may want an extra."""

from __future__ import annotations

from importlib import import_module

from menzil.bridge.source import Source, SourceError, Surroundings
from menzil.ops.bridges import Spec

SOURCES = {
    "amqp": "menzil.bridge.amqp:AmqpSource",
    "kafka": "menzil.bridge.kafka:KafkaSource",
    "mqtt": "menzil.bridge.mqtt:MqttSource",
    "nats": "menzil.bridge.nats:NatsSource",
    "redis": "menzil.bridge.redis:RedisSource",
}


def make_source(spec: Spec, surroundings: Surroundings) -> Source:
    """Return the source of a bridge, not opened yet. Raises SourceError."""
    place = SOURCES.get(spec.protocol)
    if place is None:
        raise SourceError(f"This version of menzil cannot read from {spec.protocol}")
    module, _, name = place.partition(":")
    try:
        kind: type[Source] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        said = f"{spec.protocol} needs {error.name}: install menzil[{spec.protocol}]"
        raise SourceError(said) from None
    return kind(spec, surroundings)
