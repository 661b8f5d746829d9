"""Names of spans, their attributes and their measurements: the one file that follows the semantic conventions (1.44.0).

The messaging conventions are still in development: what they rename is renamed here and nowhere else. The reference
page shows SPANS, ATTRIBUTES and MEASURES as they stand here, and a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
SCOPE = "menzil"
SYSTEM = "menzil"

#: Where the context of a message is kept: keys of its metadata, as W3C Trace Context spells them.
TRACEPARENT, TRACESTATE = "traceparent", "tracestate"

MESSAGING_SYSTEM = "messaging.system"
OPERATION = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
DESTINATION = "messaging.destination.name"
TEMPLATE = "messaging.destination.template"
MESSAGE_ID = "messaging.message.id"
CONVERSATION_ID = "messaging.message.conversation_id"
BODY_SIZE = "messaging.message.body.size"
BATCH_COUNT = "messaging.batch.message_count"
CLIENT_ID = "messaging.client.id"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"
ATTEMPT = "messaging.menzil.attempt"
OUTCOME = "messaging.menzil.outcome"
PRIORITY = "messaging.menzil.priority"
WAIT_MS = "messaging.menzil.wait_ms"
REPLAY_OF = "messaging.menzil.replay_of"
REDRIVE_OF = "messaging.menzil.redrive_of"
ORDERING_KEY = "messaging.menzil.ordering_key"
IDEMPOTENCY_KEY = "messaging.menzil.idempotency_key"
METHOD = "http.request.method"
STATUS = "http.response.status_code"
RESENT = "http.request.resend_count"
SCHEME = "url.scheme"


@dataclass(frozen=True, slots=True)
class SpanName:
    """One kind of span: `kind` is OpenTelemetry's, `type` the value of messaging.operation.type."""

    name: str
    kind: Literal["PRODUCER", "CONSUMER", "CLIENT"]
    type: str
    when: str
    related: str


#: In the order of a message's life.
SPANS = (
    SpanName(
        "send {channel}",
        "PRODUCER",
        "send",
        "one message is sent",
        "its context is the creation context",
    ),
    SpanName(
        "create {channel}",
        "PRODUCER",
        "create",
        "each message of a batch of up to 100",
        "its context is the creation context",
    ),
    SpanName(
        "send {channel}",
        "CLIENT",
        "send",
        "the batch of these messages is sent",
        "links to each `create`",
    ),
    SpanName(
        "send {channel}",
        "PRODUCER",
        "send",
        "a larger batch, or any with `create_spans=False`",
        "its context is the creation context of all",
    ),
    SpanName(
        "publish {event_type}",
        "PRODUCER",
        "send",
        "an event, or a batch of events, is published",
        "its context is the creation context of all copies",
    ),
    SpanName(
        "receive {channel}",
        "CLIENT",
        "receive",
        "a dequeue by hand found messages",
        "links to the creation context of each",
    ),
    SpanName(
        "process {channel}",
        "CONSUMER",
        "process",
        "a handler runs, or an endpoint is delivered to",
        'links to the creation context; with `parent="creation"` that is its parent',
    ),
    SpanName(
        "{method}",
        "CLIENT",
        "",
        "each HTTP request to an endpoint",
        "child of `process`; its context goes out as `traceparent`",
    ),
    SpanName(
        "complete {channel}",
        "CLIENT",
        "settle",
        "messages are completed, one span per call",
        "links to `process`, or to the creation context of what was dequeued by hand",
    ),
    SpanName(
        "defer {channel}",
        "CLIENT",
        "settle",
        "messages are put back, one span per call",
        "as `complete`",
    ),
    SpanName(
        "fail {channel}",
        "CLIENT",
        "settle",
        "messages have failed, one span per call",
        "as `complete`",
    ),
    SpanName(
        "redrive {channel}",
        "PRODUCER",
        "send",
        "dead letters are sent once more",
        "links to the creation context of the original, if it is one message",
    ),
    SpanName(
        "replay {channel}",
        "PRODUCER",
        "send",
        "ended messages are sent once more",
        "links to the creation context of the original, if it is one message",
    ),
)

#: Each attribute, and what it holds.
ATTRIBUTES = {
    MESSAGING_SYSTEM: "`menzil`",
    OPERATION: "the first word of the span's name",
    OPERATION_TYPE: "`create`, `send`, `receive`, `process` or `settle`",
    DESTINATION: "the channel, endpoint or event type, if all messages have the same",
    TEMPLATE: "what `template` answers for that name; the span is then named after it",
    MESSAGE_ID: "the id, if the span is about one message",
    CONVERSATION_ID: "the correlation id",
    BATCH_COUNT: "how many messages, if the call takes several",
    CLIENT_ID: "the name of the worker",
    SERVER_ADDRESS: "the host of the database; of an HTTP request, the host of the endpoint",
    SERVER_PORT: "its port",
    ERROR_TYPE: "the class of what went wrong, never its text: an exception, an HTTP status, or `Fail`",
    ATTEMPT: "how often the message was handed out, this time included",
    OUTCOME: "`completed`, `deferred`, `failed`, or `stopped` when the worker handed it back",
    PRIORITY: "0 to 10",
    WAIT_MS: "milliseconds from when the message was due until its first attempt began",
    REPLAY_OF: "the id of the message that is replayed",
    REDRIVE_OF: "the id of the message that is redriven",
    ORDERING_KEY: "the ordering key, only with `Tracing(keys=True)`",
    IDEMPOTENCY_KEY: "the idempotency key, only with `Tracing(keys=True)`",
    BODY_SIZE: "bytes of the body, only with `Tracing(body_size=True)`",
    METHOD: "of an HTTP request",
    SCHEME: "of an HTTP request; path and query stay out, because they may hold credentials",
    STATUS: "of the answer to an HTTP request",
    RESENT: "attempts before this one, if there were any",
}

#: Name, instrument, unit, and what is measured.
MEASURES = {
    "messaging.client.sent.messages": ("counter", "{message}", "messages sent"),
    "messaging.client.consumed.messages": ("counter", "{message}", "messages dequeued by hand, or delivered"),
    "messaging.client.operation.duration": ("histogram", "s", "time of a call: send, publish, receive, settle"),
    "messaging.process.duration": ("histogram", "s", "time of a handler or a delivery"),
}
SENT, CONSUMED, OPERATION_DURATION, PROCESS_DURATION = MEASURES
#: Bounds of the histograms, in seconds, as the conventions advise.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
