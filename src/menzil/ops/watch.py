"""WATCH: numbers, health and workers, without a payload."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from menzil.model.wire import json_loads, read_json, read_time
from menzil.ops.op import Op, Rows


@dataclass(frozen=True, slots=True)
class Metric:
    """One number, as a monitoring system wants it."""

    name: str
    value: float
    labels: dict[str, str]
    kind: Literal["gauge", "counter"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of the health check, and what to do about it."""

    name: str
    status: Literal["ok", "warning", "error"]
    detail: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One worker, as the database has heard of it."""

    worker: str
    host: str
    pid: int
    version: str
    channels: list[str] | None
    concurrency: int
    in_flight: int
    delivered: int
    failed: int
    started_at: datetime
    last_heartbeat_at: datetime
    status: Literal["alive", "stopping", "stopped", "lost"]


# Numbers travel as text and lists as JSON: the runner decodes neither floats nor arrays of text.
_METRICS = "select metric_name, metric_value::text, labels, metric_type from menzil.metrics()"
_HEALTH = "select check_name, status, detail, hint from menzil.health_check()"
_WORKERS = """
select worker, host, pid, version, to_jsonb(channels), concurrency, in_flight, delivered, failed, started_at,
  last_heartbeat_at, status
from menzil.get_worker_status()"""


def metrics() -> Op[list[Metric]]:
    """menzil.metrics."""
    return Op(_METRICS, (), _read_metrics)


def _read_metrics(rows: Rows) -> list[Metric]:
    return [Metric(name, float(value), read_json(labels, json_loads), kind) for name, value, labels, kind in rows]


def health_check() -> Op[list[Check]]:
    """menzil.health_check."""
    return Op(_HEALTH, (), lambda rows: [Check(*row) for row in rows])


def get_worker_status() -> Op[list[WorkerStatus]]:
    """menzil.get_worker_status."""
    return Op(_WORKERS, (), lambda rows: [_read_worker(*row) for row in rows])


def _read_worker(*row: Any) -> WorkerStatus:
    worker = dict(zip(WorkerStatus.__dataclass_fields__, row, strict=True))
    if worker["channels"] is not None:
        worker["channels"] = read_json(worker["channels"], json_loads)
    for word in ("started_at", "last_heartbeat_at"):
        worker[word] = read_time(worker[word])
    return WorkerStatus(**worker)
