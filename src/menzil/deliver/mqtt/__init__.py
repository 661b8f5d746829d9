"""The protocol `mqtt`: messages to a topic, acknowledged by the broker."""

from menzil.deliver.mqtt.protocol import Mqtt

__all__ = ["Mqtt"]
