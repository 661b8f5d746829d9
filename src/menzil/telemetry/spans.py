"""Everything that makes spans in one place, made once for each SDK and each way of tracing."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from typing import Any

from opentelemetry.trace import NoOpTracerProvider, TracerProvider

from menzil.telemetry import names
from menzil.telemetry.consuming import Consuming
from menzil.telemetry.instruments import Instruments
from menzil.telemetry.producing import Producing
from menzil.telemetry.tracing import Tracing


class Spans(Producing, Consuming):
    """The spans of one client or worker."""


@lru_cache(maxsize=64)
def made(tracers: TracerProvider | None, meters: Any, how: Tracing) -> Spans:
    """Spans by these providers."""
    tracer = (tracers or NoOpTracerProvider()).get_tracer(names.SCOPE, version("menzil"), names.SCHEMA_URL)
    return Spans(tracer, _instruments(meters), how)


@lru_cache(maxsize=8)
def _instruments(meters: Any) -> Instruments | None:
    if meters is None:
        return None
    return Instruments(meters.get_meter(names.SCOPE, version("menzil"), names.SCHEMA_URL))
