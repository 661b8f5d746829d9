"""The protocol `amqp`: messages to exchanges of RabbitMQ, by AMQP 0-9-1."""

try:
    import pamqp  # noqa: F401 # so that the reason comes before the protocol is used
except ModuleNotFoundError:
    raise ModuleNotFoundError("it needs pamqp: pip install 'menzil[amqp]'", name="pamqp") from None

from menzil.deliver.amqp.protocol import Amqp

__all__ = ["Amqp"]
