"""The creation context of a message: how it gets into the metadata of the message, and out of it again.

Always W3C Trace Context, not the propagators of the program: metadata is read by senders, workers and receivers of
other programs, and by the lake. Baggage stays where it is: messages go to third parties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from menzil.model.message import Message
from menzil.telemetry.names import TRACEPARENT, TRACESTATE

#: Characters of a tracestate that are read: as many as a receiver must accept.
LONGEST = 512

_W3C = TraceContextTextMapPropagator()


def written(span: Span) -> dict[str, str]:
    """The context of a span as metadata; nothing when the span has none."""
    fields: dict[str, str] = {}
    _W3C.inject(fields, context=set_span_in_context(span, Context()))
    return fields


def carried(metadata: Any, headers: Any, fields: Mapping[str, str]) -> Any:
    """The metadata of a message with the context in it, unless the message has one of its own already."""
    if not fields or not (metadata is None or isinstance(metadata, Mapping)) or has_context(metadata, headers):
        return metadata
    return {**(metadata or {}), **fields}


def has_context(metadata: Any, headers: Any) -> bool:
    """Whether the sender has said which trace the message belongs to."""
    if isinstance(metadata, Mapping) and TRACEPARENT in metadata:
        return True
    return isinstance(headers, Mapping) and any(str(name).lower() == TRACEPARENT for name in headers)


def of_message(message: object) -> SpanContext | None:
    """The creation context that a message carries; None when it has none that can be read."""
    if not isinstance(message, Message):
        return None
    try:
        metadata, headers = message.metadata, message.headers
    except (RecursionError, ValueError):
        return None
    return read(metadata) or read(_lower(headers))


def read(fields: object) -> SpanContext | None:
    """The context in a mapping whose text is not trusted."""
    if not isinstance(fields, Mapping) or not isinstance(fields.get(TRACEPARENT), str):
        return None
    carrier = {TRACEPARENT: fields[TRACEPARENT]}
    state = fields.get(TRACESTATE)
    if isinstance(state, str) and len(state) <= LONGEST:
        carrier[TRACESTATE] = state
    context = get_current_span(_W3C.extract(carrier, context=Context())).get_span_context()
    return context if context.is_valid else None


def _lower(headers: object) -> dict[str, Any] | None:
    return {str(name).lower(): value for name, value in headers.items()} if isinstance(headers, Mapping) else None
