"""Spans of those who send: send, create, publish, redrive, replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opentelemetry.trace import Link, SpanContext, SpanKind

from menzil.model.options import Send, SendOptions
from menzil.ops.origins import Origin
from menzil.telemetry import names
from menzil.telemetry.carrying import carried, read, written
from menzil.telemetry.operation import MOST, Attributes, Core, Operation, Where, links_to, one_of

Given = Send | Mapping[str, Any]


class Sending(Operation):
    """One message on its way; `options` are those of the caller, with the creation context in their metadata."""

    options: SendOptions

    def sent(self, message_id: int, where: Where | None) -> int:
        """The database has taken it."""
        self.say(message_id=str(message_id))
        self.at(where)
        return message_id

    def published(self, count: int, where: Where | None) -> int:
        """So many copies are on their way."""
        return _published(self, count, where)


class SendingMany(Operation):
    """Many messages on their way, each with its creation context."""

    messages: Sequence[Any]

    def sent(self, ids: list[int], where: Where | None) -> list[int]:
        """The database has taken them."""
        if len(ids) == 1:
            self.say(message_id=str(ids[0]))
        self.at(where)
        return ids

    def published(self, count: int, where: Where | None) -> int:
        """So many copies are on their way."""
        return _published(self, count, where)


def _published(publishing: Operation, count: int, where: Where | None) -> int:
    publishing.say(batch_count=count)
    publishing.at(where)
    return count


class Again(Operation):
    """Messages that are sent once more."""

    single: bool

    def sent(self, answer: int, where: Where | None) -> int:
        """The answer is the id of the new message, or the number of new messages."""
        self.set({names.MESSAGE_ID: str(answer)} if self.single else {names.BATCH_COUNT: answer})
        self.at(where)
        return answer


class Producing(Core):
    """Spans around calls that make messages."""

    def send(self, channel: object, payload: object, options: SendOptions) -> Sending:
        """One message: the context of this span is its creation context."""
        name = str(channel)
        attributes = self.attributes("send", "send", name) | self._of_options(options)
        sending = Sending(self, self.name("send", name), SpanKind.PRODUCER, attributes, counter=names.SENT)
        sending.options = options
        if not isinstance(payload, bytes | bytearray | memoryview):  # such a message has no metadata
            metadata = carried(options.get("metadata"), options.get("headers"), written(sending.span))
            if metadata is not None:
                sending.options = {**options, "metadata": metadata}
        return sending

    def send_many(self, messages: Iterable[Given]) -> SendingMany:
        """A batch: a span for each message, if they are few, else one whose context all of them carry."""
        given = list(messages)
        channel = one_of(map(_channel, given))
        attributes = self.attributes("send", "send", channel) | {names.BATCH_COUNT: len(given)}
        name = self.name("send", channel)
        if self.how.create_spans and len(given) <= MOST:
            made = [self._create(message) for message in given]
            links = [Link(context) for _, context in made if context.is_valid]
            sending = SendingMany(
                self, name, SpanKind.CLIENT, attributes, links=links, count=len(given), counter=names.SENT
            )
            sending.messages = [message for message, _ in made]
            return sending
        sending = SendingMany(self, name, SpanKind.PRODUCER, attributes, count=len(given), counter=names.SENT)
        fields = written(sending.span)
        sending.messages = [_with_context(message, fields) for message in given]
        return sending

    def publish(self, event_type: object, options: SendOptions) -> Sending:
        """One event: all copies carry the context of this span."""
        name = str(event_type)
        attributes = self.attributes("publish", "send", name) | self._of_options(options)
        publishing = Sending(self, self.name("publish", name), SpanKind.PRODUCER, attributes, counter=names.SENT)
        metadata = carried(options.get("metadata"), options.get("headers"), written(publishing.span))
        publishing.options = options if metadata is None else {**options, "metadata": metadata}
        return publishing

    def publish_batch(self, events: Sequence[Any]) -> SendingMany:
        """Many events: all copies of all of them carry the context of this span."""
        name = one_of(event.get("event_type") if isinstance(event, Mapping) else None for event in events)
        attributes = self.attributes("publish", "send", name) | {names.BATCH_COUNT: len(events)}
        publishing = SendingMany(
            self, self.name("publish", name), SpanKind.PRODUCER, attributes, count=len(events), counter=names.SENT
        )
        fields = written(publishing.span)
        publishing.messages = [_with_context(event, fields) for event in events]
        return publishing

    def again(self, how: str, channel: str | None, origin: Origin | None) -> Again:
        """A redrive or a replay, of one message or of many: new messages carry the context of their originals."""
        channel = channel if origin is None else origin.channel
        attributes = self.attributes(how, "send", channel)
        context = None
        if origin is not None:
            attributes[names.REDRIVE_OF if how == "redrive" else names.REPLAY_OF] = origin.id
            context = read({names.TRACEPARENT: origin.traceparent, names.TRACESTATE: origin.tracestate})
        sending = Again(self, self.name(how, channel), SpanKind.PRODUCER, attributes, links=links_to([context]))
        sending.single = origin is not None
        return sending

    def _create(self, message: Given) -> tuple[Given, SpanContext]:
        channel = str(_channel(message))
        attributes = self.attributes("create", "create", channel) | self._of_options(_options(message))
        span = self.tracer.start_span(self.name("create", channel), kind=SpanKind.PRODUCER, attributes=attributes)
        span.end()
        return _with_context(message, written(span)), span.get_span_context()

    def _of_options(self, options: Mapping[str, Any]) -> Attributes:
        found: Attributes = {}
        if options.get("correlation_id") is not None:
            found[names.CONVERSATION_ID] = str(options["correlation_id"])
        if isinstance(options.get("priority"), int):
            found[names.PRIORITY] = options["priority"]
        if self.how.keys:
            keys = {names.ORDERING_KEY: "ordering_key", names.IDEMPOTENCY_KEY: "idempotency_key"}
            found |= {name: options[word] for name, word in keys.items() if isinstance(options.get(word), str)}
        return found


def _channel(message: Given) -> object:
    if isinstance(message, Send):
        return message.channel
    return message.get("channel", message.get("endpoint")) if isinstance(message, Mapping) else None


def _options(message: Given) -> Mapping[str, Any]:
    if isinstance(message, Send):
        return {word: getattr(message, word) for word in SendOptions.__annotations__}
    return message if isinstance(message, Mapping) else {}


def _with_context(message: Any, fields: Mapping[str, str]) -> Any:
    """The same message with the context in its metadata; what is no message is left for others to refuse."""
    if isinstance(message, Send):
        metadata = carried(message.metadata, message.headers, fields)
        return message if metadata is message.metadata else replace(message, metadata=metadata)
    if not isinstance(message, Mapping):
        return message
    metadata = carried(message.get("metadata"), message.get("headers"), fields)
    return message if metadata is message.get("metadata") else {**message, "metadata": metadata}
