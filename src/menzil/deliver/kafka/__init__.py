"""The protocol `kafka`: records of topics, by the client of Confluent (librdkafka)."""

try:
    import confluent_kafka as _client  # noqa: F401
except ImportError as error:
    raise ImportError("it needs the package confluent-kafka: pip install 'menzil[kafka]'") from error

from menzil.deliver.kafka.protocol import Kafka

__all__ = ["Kafka"]
