"""The protocol `nats`: messages of a stream of NATS JetStream."""

from menzil.deliver.nats.protocol import Nats

__all__ = ["Nats"]
