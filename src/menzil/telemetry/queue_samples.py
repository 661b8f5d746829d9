"""From what the database answered to the samples of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from menzil.ops.records import Record
from menzil.ops.scraping import Total
from menzil.ops.watch import Metric, WorkerStatus
from menzil.telemetry.channels import Named
from menzil.telemetry.metric_names import OTHER, PULSE_BOUNDS, REASONS, WORKERS
from menzil.telemetry.samples import Buckets, Samples

Many = Callable[[Iterable[float]], float]
_FAILED = ("", "1xx", "2xx", "3xx", "4xx", "5xx")

#: By the name in metrics(): the name here, and what stands for several channels together.
_BY_CHANNEL: dict[str, tuple[str, Many]] = {
    "queue_depth_by_endpoint": ("menzil_messages_waiting", sum),
    "queue_depth_by_endpoint_is_lower_bound": ("menzil_messages_waiting_is_lower_bound", max),
    "in_flight_by_endpoint": ("menzil_messages_in_flight", sum),
    "oldest_message_age_seconds_by_endpoint": ("menzil_oldest_waiting_seconds", max),
    "dlq_depth_by_endpoint": ("menzil_dead_letters", sum),
    "endpoint_circuit_state": ("menzil_endpoint_circuit_state", max),
}
_PLAIN = {
    "scheduled": "menzil_messages_scheduled",
    "waiting_for_ordering_key": "menzil_messages_behind_key",
    "snapshot_age_seconds": "menzil_snapshot_age_seconds",
}
#: Only endpoints have it. Of the others a channel without a number has 0: a series that comes and goes is hard to ask.
_SOMETIMES = "endpoint_circuit_state"


@dataclass(frozen=True, slots=True)
class Found:
    """The answers of one scrape."""

    schema_version: int
    metrics: list[Metric]
    totals: list[Total]
    states: list[Record]
    workers: list[WorkerStatus]
    jobs: list[Record]
    consumers: list[Record]
    plans: list[Record]
    dead_rows: list[Record]


def samples_of(found: Found, named: Named, successes: dict[str, int], version: str) -> Samples:
    """Everything the exporter says about a database that answers."""
    samples = Samples()
    samples.add("menzil_up", 1)
    samples.add("menzil_build_info", 1, version, str(found.schema_version))
    totals, others = named.count(found.totals, [state["channel"] for state in found.states])
    _gauges(samples, found, totals)
    for name, total in totals.items():
        _counters(samples, name, total)
    if others is not None:
        _counters(samples, OTHER, others)
    _states(samples, found.states, totals)
    for status in WORKERS:
        samples.add("menzil_workers", sum(worker.status == status for worker in found.workers), status)
    for job in found.jobs:
        if job["last_run"] is not None and not job["failed"]:
            successes[job["name"]] = job["last_run"]
        if job["name"] in successes:
            samples.add("menzil_janitor_last_success_timestamp_seconds", successes[job["name"]], job["name"])
    for consumer in found.consumers:
        samples.add("menzil_feed_lag_seconds", consumer["behind_ms"] / 1000, consumer["name"])
    for row in found.dead_rows:
        samples.add("menzil_dead_rows", row["rows"], row["table"])
    remaining = dict.fromkeys(("redrive", "replay", "cancel"), 0) | {
        row["kind"]: row["remaining"] for row in found.plans
    }
    for kind, count in remaining.items():
        samples.add("menzil_plan_remaining_messages", count, kind)
    return samples


def _gauges(samples: Samples, found: Found, totals: Mapping[str, Total]) -> None:
    values: dict[str, dict[str, float]] = {name: {} for name in _BY_CHANNEL}
    for metric in found.metrics:
        if metric.name in _BY_CHANNEL:
            values[metric.name][metric.labels["endpoint"]] = metric.value
        elif metric.name == "queue_depth" and metric.labels["status"] == "pending":
            samples.add("menzil_queue_depth", metric.value)
        elif metric.name in _PLAIN:
            samples.add(_PLAIN[metric.name], metric.value)
    for name, (ours, many) in _BY_CHANNEL.items():
        known = values[name]
        if name != _SOMETIMES:
            known = dict.fromkeys((state["channel"] for state in found.states), 0.0) | known
        _by_channel(samples, ours, known, many, totals)


def _by_channel(
    samples: Samples, name: str, values: Mapping[str, float], many: Many, totals: Mapping[str, Total], *labels: str
) -> None:
    """Say the value of each channel that has a name, and one for all others."""
    others = [value for channel, value in values.items() if channel not in totals]
    for channel, value in values.items():
        if channel in totals:
            samples.add(name, value, channel, *labels)
    if others:
        samples.add(name, many(others), OTHER, *labels)


def _counters(samples: Samples, channel: str, total: Total) -> None:
    samples.add("menzil_messages_sent_total", total.sent, channel)
    ended = {"completed": total.completed, "failed": total.dead, "expired": total.expired}
    for status, count in (ended | {"cancelled": total.cancelled}).items():
        samples.add("menzil_messages_ended_total", count, channel, status)
    for result in ("completed", "deferred", "recovered"):
        samples.add("menzil_attempts_total", getattr(total, result), channel, result, "")
    for status_class, count in zip(_FAILED, total.failed, strict=True):
        if count or not status_class:  # most channels never see an HTTP status
            samples.add("menzil_attempts_total", count, channel, "failed", status_class)
    samples.add("menzil_delivery_seconds", Buckets(PULSE_BOUNDS, tuple(total.ended_ms)), channel)
    samples.add("menzil_attempt_duration_seconds", Buckets(PULSE_BOUNDS, tuple(total.try_ms)), channel)


def _states(samples: Samples, states: Sequence[Record], totals: Mapping[str, Total]) -> None:
    for reason in REASONS:
        held = {state["channel"]: float(state["held_by"] == reason) for state in states}
        _by_channel(samples, "menzil_channel_held", held, sum, totals, reason)
    blocked = {state["channel"]: float(state["blocked_keys"]) for state in states}
    _by_channel(samples, "menzil_ordering_keys_blocked", blocked, sum, totals)
    for name, used, limit in (
        ("menzil_channel_concurrency_used_ratio", "in_flight", "max_concurrency"),
        ("menzil_channel_rate_used_ratio", "rate_used", "rate_limit"),
    ):
        ratios = {state["channel"]: _share(state[used], state[limit]) for state in states if state[limit] is not None}
        _by_channel(samples, name, ratios, max, totals)


def _share(used: Any, limit: Any) -> float:
    return (used or 0) / limit if limit else 0.0
