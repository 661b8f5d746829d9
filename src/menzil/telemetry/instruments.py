"""Measurements by OpenTelemetry: how many messages, and how long a call takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.metrics import Counter, Histogram, Meter

from menzil.telemetry import names

#: Attributes of a measurement. Ids stay out: each set of values is a series of its own.
_KEPT = (
    names.MESSAGING_SYSTEM,
    names.OPERATION,
    names.OPERATION_TYPE,
    names.DESTINATION,
    names.TEMPLATE,
    names.SERVER_ADDRESS,
    names.SERVER_PORT,
    names.ERROR_TYPE,
)


class Instruments:
    """The instruments of one meter."""

    def __init__(self, meter: Meter) -> None:
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for name, (kind, unit, text) in names.MEASURES.items():
            if kind == "counter":
                self._counters[name] = meter.create_counter(name, unit, text)
            else:
                self._histograms[name] = meter.create_histogram(
                    name, unit, text, explicit_bucket_boundaries_advisory=names.BOUNDS
                )

    def measure(
        self, attributes: Mapping[str, Any], seconds: float, duration: str, counter: str | None, count: int
    ) -> None:
        """Record one operation."""
        kept = {name: attributes[name] for name in _KEPT if name in attributes}
        if names.TEMPLATE in kept:
            kept.pop(names.DESTINATION, None)  # one series for all tenants
        self._histograms[duration].record(seconds, kept)
        if counter is not None and count:
            self._counters[counter].add(count, kept)
