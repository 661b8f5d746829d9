"""A program's OpenTelemetry SDK, with everything it exports kept in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.metrics import _internal as meters
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext
from opentelemetry.util._once import Once


class Sdk:
    """What was exported so far."""

    def __init__(self, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self.tracers = TracerProvider(**options)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.tracer = self.tracers.get_tracer("the program")

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        """Spans that have ended, in that order; only those whose name begins so."""
        return [span for span in self._spans.get_finished_spans() if name is None or span.name.startswith(name)]

    def one(self, name: str) -> ReadableSpan:
        """The one span of this name."""
        (span,) = [span for span in self.spans() if span.name == name]
        return span

    def names(self) -> list[str]:
        return [span.name for span in self.spans()]

    def clear(self) -> None:
        self._spans.clear()


def same(one: SpanContext, other: SpanContext) -> bool:
    return (one.trace_id, one.span_id) == (other.trace_id, other.span_id)


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def place(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def traceparent(span: ReadableSpan) -> str:
    trace_id, span_id = place(span)
    return f"00-{trace_id:032x}-{span_id:016x}-{span.context.trace_flags:02x}"


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def _forget() -> None:
    # The API takes one provider per process; a test process is many programs, one after the other.
    trace._TRACER_PROVIDER = None
    trace._TRACER_PROVIDER_SET_ONCE = Once()
    meters._METER_PROVIDER = None
    meters._METER_PROVIDER_SET_ONCE = Once()


@contextmanager
def installed(**options: Any) -> Iterator[Sdk]:
    """A program that traces, as long as this lasts."""
    sdk = Sdk(**options)
    _forget()
    trace.set_tracer_provider(sdk.tracers)
    try:
        yield sdk
    finally:
        sdk.tracers.shutdown()
        _forget()


@contextmanager
def measuring() -> Iterator[InMemoryMetricReader]:
    """A program that measures, as long as this lasts."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    _forget()
    metrics.set_meter_provider(provider)
    try:
        yield reader
    finally:
        provider.shutdown()
        _forget()
