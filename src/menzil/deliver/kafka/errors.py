"""What an error of librdkafka means for a message."""

from __future__ import annotations

from confluent_kafka import KafkaError

from menzil.deliver.broker.errors import bad_endpoint, bad_message, unknown
from menzil.model.outcome import Fail

#: The broker judges a request, and a request holds many messages: each of them is sent again in a request of its own.
OF_A_BATCH = frozenset({
    KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_RECORD,
    KafkaError.POLICY_VIOLATION, KafkaError.INVALID_TIMESTAMP,
})  # fmt: skip

#: These blame the message once it was alone.
MESSAGE = OF_A_BATCH | {KafkaError._INVALID_ARG}

#: Nothing was written.
ENDPOINT = frozenset({
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.UNSUPPORTED_SASL_MECHANISM, KafkaError.ILLEGAL_SASL_STATE,
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION, KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.INVALID_REQUIRED_ACKS, KafkaError.UNSUPPORTED_VERSION, KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    KafkaError.KAFKA_STORAGE_ERROR, KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION,
    KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._FATAL, KafkaError._PURGE_QUEUE,
    KafkaError._UNSUPPORTED_FEATURE,
})  # fmt: skip

#: The login or the certificate is at fault: another try with the same producer cannot succeed.
LOGIN = frozenset({
    KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
})  # fmt: skip


def verdict(error: KafkaError, topic: str, *, alone: bool = True) -> Fail:
    """Judge the report of one message. `alone` says that no other message was judged with it."""
    code = error.code()
    said = f"{error.name()}: {error.str()} (topic {topic})"
    if code in MESSAGE and alone:
        return bad_message(said)
    return bad_endpoint(said) if code in ENDPOINT else unknown(said)


def text(error: KafkaError) -> str:
    """Return an error as people read it."""
    return f"{error.name()}: {error.str()}"
