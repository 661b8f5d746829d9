"""Spans of those who consume: receive, process, the HTTP request of a delivery, complete, defer, fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import Token
from datetime import UTC, datetime
from time import perf_counter_ns, time_ns
from types import TracebackType
from typing import Any, Self, TypeVar

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, set_span_in_context

from menzil.model.message import Message
from menzil.model.outcome import Complete, Defer, Fail
from menzil.telemetry import names
from menzil.telemetry.carrying import of_message, written
from menzil.telemetry.operation import Attributes, Core, Operation, Where, links_to, one_of
from menzil.telemetry.tracing import PROCESSING

T = TypeVar("T")


class Processing(Operation):
    """A handler or a delivery at work on one message."""

    core: Consuming
    worker: str | None = None
    message_id: int = 0
    _var: Token[Processing | None] | None = None

    def returned(self, result: T) -> T:
        """Say what came out: an outcome, or nothing, which is as good as Complete."""
        outcome = getattr(result, "outcome", result)
        if outcome is None or isinstance(outcome, Complete):
            self.say(outcome="completed")
        elif isinstance(outcome, Defer):
            self.say(outcome="deferred")
        else:
            self.say(outcome="failed")
            self.failed(_class_of(outcome))
        return result

    @property
    def carried(self) -> Mapping[str, str]:
        """What a receiver gets of the trace."""
        return written(self.span)

    def over(self, result: object, seconds: float) -> None:
        """End a delivery that was one of a batch: it was never current, because its batch shares one task."""
        self.returned(result)
        self.end(seconds)

    def __enter__(self) -> Self:
        super().__enter__()
        self._var = PROCESSING.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            self.say(outcome="failed" if isinstance(error, Exception) else "stopped")
        if self._var is not None:
            PROCESSING.reset(self._var)
        super().__exit__(kind, error, at)


class Receiving:
    """A dequeue by hand. It has a span only if it finds something: a consumer may ask all day for nothing."""

    def __init__(self, core: Consuming) -> None:
        self._core = core
        self._begun = perf_counter_ns()

    def received(self, messages: list[Message], where: Where | None) -> list[Message]:
        """These were found."""
        if not messages:
            return messages
        core, spent = self._core, perf_counter_ns() - self._begun
        channel = one_of(message.channel for message in messages)
        receiving = Operation(
            core,
            core.name("receive", channel),
            SpanKind.CLIENT,
            core.attributes("receive", "receive", channel) | {names.BATCH_COUNT: len(messages)},
            links=links_to(map(of_message, messages)),
            start_time=time_ns() - spent,
            count=len(messages),
            counter=names.CONSUMED,
        )
        if len(messages) == 1:
            receiving.set(core.of_leased(messages[0]))
        receiving.at(where)
        receiving.end(spent / 1e9)
        return messages


class Requesting(Operation):
    """One HTTP request of a delivery; `headers` are what the receiver gets of the trace."""

    headers: Mapping[str, str]

    def answered(self, status: int) -> None:
        """An answer came, good or bad."""
        self.say(status=status)
        if status >= 400:
            self.failed(str(status))


class Consuming(Core):
    """Spans around calls that take messages and end them."""

    def receiving(self) -> Receiving:
        """A dequeue by hand begins."""
        return Receiving(self)

    def process(self, message: Message, worker: str | None = None) -> Processing:
        """A handler or a delivery, from its beginning to its end."""
        created = of_message(message)
        attributes = self.attributes("process", "process", message.channel) | self.of_leased(message)
        attributes |= {names.ATTEMPT: message.attempt, names.PRIORITY: message.priority}
        if worker is not None:
            attributes[names.CLIENT_ID] = worker
        if message.attempt == 1:
            due = message.scheduled_at or message.created_at
            attributes[names.WAIT_MS] = max(0, round((datetime.now(UTC) - due).total_seconds() * 1000))
        continues = self.how.parent == "creation" and created is not None
        processing = Processing(
            self,
            self.name("process", message.channel),
            SpanKind.CONSUMER,
            attributes,
            # The task of a worker may have inherited the context of the program around it, which is not the message's.
            context=_below(created) if continues else Context(),
            links=[] if continues else links_to([created]),
            counter=names.CONSUMED,
            duration=names.PROCESS_DURATION,
        )
        processing.core, processing.worker, processing.message_id = self, worker, message.id
        return processing

    def request(self, method: str, scheme: str, where: Where, attempt: int) -> Requesting:
        """One HTTP request, below the process span that is current."""
        attributes: Attributes = {names.METHOD: method, names.SCHEME: scheme, names.SERVER_ADDRESS: where[0]}
        attributes[names.SERVER_PORT] = where[1]
        if attempt > 1:
            attributes[names.RESENT] = attempt - 1
        requesting = Requesting(_unmeasured(self), method, SpanKind.CLIENT, attributes)
        requesting.headers = written(requesting.span)
        return requesting

    def settle(
        self,
        operation: str,
        leases: Sequence[object],
        *,
        worker: str | None = None,
        contexts: Iterable[SpanContext | None] | None = None,
        where: Where | None = None,
    ) -> Operation:
        """Messages end, or go back: `operation` is complete, defer or fail; `contexts` are of their process spans."""
        channel = one_of(getattr(lease, "channel", None) for lease in leases)
        channel = None if channel == "None" else channel
        attributes = self.attributes(operation, "settle", channel)
        if len(leases) == 1:
            attributes[names.MESSAGE_ID] = str(getattr(leases[0], "id", None))
        else:
            attributes[names.BATCH_COUNT] = len(leases)
        if worker is not None:
            attributes[names.CLIENT_ID] = worker
        links = links_to(map(of_message, leases) if contexts is None else contexts)
        settling = Operation(self, self.name(operation, channel), SpanKind.CLIENT, attributes, links=links)
        settling.at(where)
        return settling

    def of_leased(self, message: Message) -> Attributes:
        """What a span says about one message."""
        found: Attributes = {names.MESSAGE_ID: str(message.id)}
        try:
            correlation_id = message.correlation_id
        except ValueError:
            correlation_id = None
        if correlation_id is not None:
            found[names.CONVERSATION_ID] = str(correlation_id)
        if self.how.body_size:
            found[names.BODY_SIZE] = message.size
        if self.how.keys and message.ordering_key is not None:
            found[names.ORDERING_KEY] = message.ordering_key
        return found


def _below(created: SpanContext | None) -> Context:
    assert created is not None
    return set_span_in_context(NonRecordingSpan(created), Context())


def _unmeasured(core: Core) -> Core:
    """HTTP requests have measurements of their own conventions, which are not ours to make."""
    return core if core.instruments is None else Core(core.tracer, None, core.how)


def _class_of(outcome: Any) -> str:
    """What failed, in one word: the status of an HTTP answer, or that the handler said Fail."""
    if not isinstance(outcome, Fail):
        return "TypeError"  # it returned what is no outcome
    status = outcome.response.get("status") if isinstance(outcome.response, dict) else None
    return str(status) if isinstance(status, int) else "Fail"
