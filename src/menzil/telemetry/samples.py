"""Numbers on their way to Prometheus, as plain values: by metric, each with its labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from menzil.model.errors import UsageError
from menzil.telemetry.metric_names import DATABASE, FAMILIES

if TYPE_CHECKING:
    from prometheus_client import Metric


class Buckets(NamedTuple):
    """A histogram: so many at or below each bound, and beyond the last; `sum` where it is known."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float | None = None


class Samples:
    """Values by metric."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float | Buckets]] = {}

    def add(self, name: str, value: float | Buckets, *labels: str) -> None:
        """Say one value; labels in the order of the table."""
        assert len(labels) == len(FAMILIES[name].labels), name
        self._values.setdefault(name, {})[labels] = value

    def get(self, name: str, *labels: str) -> float | Buckets | None:
        """One value, if it was said."""
        return self._values.get(name, {}).get(labels)

    def values(self, name: str) -> dict[tuple[str, ...], float | Buckets] | None:
        """All values of a metric, by their labels."""
        return self._values.get(name)

    def families(self) -> Iterator[Metric]:
        """What the official client writes, in the order of the table."""
        return _families((), [((), self)])


def of_databases(samples: Mapping[str, Samples]) -> Iterator[Metric]:
    """The same for several databases: each value has the label `database` before its own."""
    return _families((DATABASE,), [((name,), one) for name, one in samples.items()])


def _families(names: tuple[str, ...], groups: Sequence[tuple[tuple[str, ...], Samples]]) -> Iterator[Metric]:
    core = client("prometheus_client.core")
    for name, family in FAMILIES.items():
        found = [(where, values) for where, samples in groups if (values := samples.values(name)) is not None]
        if not found:
            continue
        if family.kind == "info":
            metric = core.InfoMetricFamily(name.removesuffix("_info"), family.text, labels=names)
            for where, values in found:
                (labels,) = values
                metric.add_metric(where, dict(zip(family.labels, labels, strict=True)))
            yield metric
            continue
        make = {"gauge": core.GaugeMetricFamily, "counter": core.CounterMetricFamily}
        kind = make.get(family.kind, core.HistogramMetricFamily)
        metric = kind(name, family.text, labels=[*names, *family.labels])
        for where, values in found:
            for labels, value in values.items():
                if isinstance(value, Buckets):
                    metric.add_metric([*where, *labels], list(_cumulative(value)), value.sum)
                else:
                    metric.add_metric([*where, *labels], value)
        yield metric


def _cumulative(value: Buckets) -> Iterable[tuple[str, int]]:
    names = [*(f"{bound:g}" if bound != int(bound) else f"{bound:.1f}" for bound in value.bounds), "+Inf"]
    return zip(names, accumulate(value.counts), strict=True)


class Page:
    """The one custom collector: what it is given, it shows."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Sequence[Metric]:
        """Return what is shown."""
        return self._metrics


def written(metrics: Sequence[Metric], accept: str | None) -> tuple[str, bytes]:
    """Content type and body, in the format that was asked for: OpenMetrics, or the text format of Prometheus."""
    exposition = client("prometheus_client.exposition")
    try:
        write, content_type = exposition.choose_encoder(accept or "")
    except (ValueError, TypeError):  # a version that is no number
        write, content_type = exposition.choose_encoder("")
    return content_type, write(Page(metrics))


def client(module: str) -> Any:
    """Import a module of the official client, or say what installs it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("prometheus_client"):
            raise
        raise UsageError("The Prometheus client is not installed.", hint='pip install "menzil[metrics]"') from None
