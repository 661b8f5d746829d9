"""One operation: a span that is current while the operation lasts, and the measurements of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)

from menzil.telemetry import names
from menzil.telemetry.instruments import Instruments
from menzil.telemetry.tracing import Tracing

Attributes = dict[str, Any]
#: Host and port of the database.
Where = tuple[str, int | None]

#: Messages of one batch that get a span, or a link, of their own.
MOST = 100


def kind_of(error: BaseException) -> str:
    """The class of an error, which says less than its text: that may hold a secret."""
    kind = type(error)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def mark(span: Span, error_type: str) -> None:
    """Say that the operation failed, and how, in one word."""
    span.set_attribute(names.ERROR_TYPE, error_type)
    span.set_status(Status(StatusCode.ERROR))


def links_to(contexts: Iterable[SpanContext | None]) -> list[Link]:
    """Links to these contexts, each once, as many as a span should have."""
    found: dict[tuple[int, int], Link] = {}
    for context in contexts:
        if context is not None and len(found) < MOST:
            found.setdefault((context.trace_id, context.span_id), Link(context))
    return list(found.values())


def one_of(channels: Iterable[object]) -> str | None:
    """The channel of all of them, if they have the same."""
    found = set(map(str, channels))
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class Core:
    """What all spans of one client or worker have in common."""

    tracer: Tracer
    instruments: Instruments | None
    how: Tracing

    def name(self, operation: str, channel: str | None) -> str:
        """The name of a span: few different ones, also where channels are named after tenants."""
        return operation if channel is None else f"{operation} {self._template(channel) or channel}"

    def attributes(self, operation: str, kind: str, channel: str | None) -> Attributes:
        """What every span says."""
        said: Attributes = {
            names.MESSAGING_SYSTEM: names.SYSTEM,
            names.OPERATION: operation,
            names.OPERATION_TYPE: kind,
        }
        if channel is not None:
            said[names.DESTINATION] = channel
            if template := self._template(channel):
                said[names.TEMPLATE] = template
        return said

    def _template(self, channel: str) -> str | None:
        return None if self.how.template is None else self.how.template(channel)


class Operation:
    """A span and what is measured beside it: a duration, and `count` messages if there is a counter for them."""

    def __init__(
        self,
        core: Core,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        *,
        links: Sequence[Link] = (),
        context: Context | None = None,
        start_time: int | None = None,
        count: int = 1,
        counter: str | None = None,
        duration: str = names.OPERATION_DURATION,
    ) -> None:
        self._core = core
        self._attributes = attributes
        self._count, self._counter, self._duration = count, counter, duration
        self.span = core.tracer.start_span(
            name, context=context, kind=kind, attributes=attributes, links=links, start_time=start_time
        )
        self._token: Token[Context] | None = None
        self._begun = 0.0

    @property
    def context(self) -> SpanContext | None:
        """What others may link to; None where no SDK records the span."""
        context = self.span.get_span_context()
        return context if context.is_valid else None

    def say(self, **attributes: Any) -> None:
        """Add attributes by the names of constants, in lower case."""
        self.set({getattr(names, word.upper()): value for word, value in attributes.items()})

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; None says nothing."""
        given = {name: value for name, value in attributes.items() if value is not None}
        self._attributes |= given
        self.span.set_attributes(given)

    def at(self, where: Where | None) -> None:
        """Say which server was asked."""
        if where is not None:
            self.say(server_address=where[0], server_port=where[1])

    def failed(self, error_type: str) -> None:
        """Say that it failed without raising."""
        self._attributes[names.ERROR_TYPE] = error_type
        mark(self.span, error_type)

    def __enter__(self) -> Self:
        self._begun = perf_counter()
        self._token = attach(set_span_in_context(self.span))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            self.failed(kind_of(error))
        if self._token is not None:
            detach(self._token)
        self.end(perf_counter() - self._begun)

    def end(self, seconds: float) -> None:
        """The operation is over."""
        self.span.end()
        if self._core.instruments is not None:
            self._core.instruments.measure(self._attributes, seconds, self._duration, self._counter, self._count)
