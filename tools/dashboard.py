"""The Grafana dashboard, made from a table: `python tools/dashboard.py` writes grafana/menzil.json.

A test compares the file with what is made here, and every name in it with what the exporter really says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).resolve().parent.parent / "grafana" / "menzil.json"

#: The channels that are chosen at the top of the page.
CHOSEN = 'channel=~"$channel"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, STAT_HEIGHT, HEIGHT = 24, 4, 8


class Panel(NamedTuple):
    """One panel: what it shows, in which unit, and its queries, each with its legend."""

    title: str
    unit: str
    queries: dict[str, str]
    text: str = ""
    stat: bool = False


def _rate(metric: str, by: str = "", more: str = "") -> str:
    labels = ",".join(part for part in (CHOSEN, more) if part)
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{{{labels}}}[$__rate_interval]))"


def _quantile(share: float, metric: str, by: str = "", labels: str = CHOSEN) -> str:
    groups = f"le, {by}" if by else "le"
    chosen = f"{{{labels}}}" if labels else ""
    return f"histogram_quantile({share}, sum by ({groups}) (rate({metric}_bucket{chosen}[$__rate_interval])))"


def _top(metric: str, how: str = "sum") -> dict[str, str]:
    return {f"topk(10, {how} by (channel) ({metric}{{{CHOSEN}}}))": "{{channel}}"}


def _each(query: str) -> str:
    return f"sum by (instance) ({query})"


DIED = 'status="failed"'
FAILED_TRIES = _rate("menzil_attempts_total", "channel", 'result="failed"')
#: Other programs have processes, too.
OF_WORKERS = "and on (instance) menzil_worker_leases_total"

ROWS: dict[str, list[Panel]] = {
    "Now": [
        Panel("Database answers", "bool_yes_no", {"min(menzil_up)": ""}, "Whether the last scrape went well.", True),
        Panel(
            "Waiting",
            "short",
            {
                f"sum(menzil_messages_waiting{{{CHOSEN}}})": "counted",
                "sum(menzil_queue_depth)": "whole queue",
                f"sum(menzil_messages_waiting_is_lower_bound{{{CHOSEN}}})": "channels counted in part",
            },
            "Scheduled ones included. Of a very deep queue a part is counted; the whole is told by registers.",
            True,
        ),
        Panel("Oldest", "s", {f"max(menzil_oldest_waiting_seconds{{{CHOSEN}}})": ""}, "Of what could be leased.", True),
        Panel("In flight", "short", {f"sum(menzil_messages_in_flight{{{CHOSEN}}})": ""}, "Under lease.", True),
        Panel(
            "Dead letters", "short", {f"sum(menzil_dead_letters{{{CHOSEN}}})": ""}, "That wait for a decision.", True
        ),
        Panel("Workers alive", "short", {'sum(menzil_workers{status="alive"})': ""}, "", True),
    ],
    "Flow": [
        Panel(
            "Sent and ended",
            "ops",
            {
                _rate("menzil_messages_sent_total"): "sent",
                _rate("menzil_messages_ended_total", "status"): "{{status}}",
            },
            "Messages per second, counted every 10 seconds.",
        ),
        Panel("Waiting by channel", "short", _top("menzil_messages_waiting")),
        Panel("Oldest by channel", "s", _top("menzil_oldest_waiting_seconds", "max")),
        Panel("In flight by channel", "short", _top("menzil_messages_in_flight")),
        Panel("Sent by channel", "ops", {f"topk(10, {_rate('menzil_messages_sent_total', 'channel')})": "{{channel}}"}),
        Panel(
            "Waiting for something",
            "short",
            {"menzil_messages_scheduled": "for their time", "menzil_messages_behind_key": "for their ordering key"},
        ),
    ],
    "Delivery": [
        Panel("Tries", "ops", {_rate("menzil_attempts_total", "result"): "{{result}}"}),
        Panel(
            "Failed tries by status",
            "ops",
            {_rate("menzil_attempts_total", "status_class", 'result="failed"'): "{{status_class}}"},
            "Without a status: an exception, or no answer.",
        ),
        Panel(
            "From send to end",
            "s",
            {_quantile(share, "menzil_delivery_seconds"): f"p{round(share * 100)}" for share in (0.5, 0.95, 0.99)},
        ),
        Panel(
            "Time of a try, p95",
            "s",
            {f"topk(10, {_quantile(0.95, 'menzil_attempt_duration_seconds', 'channel')})": "{{channel}}"},
        ),
        Panel(
            "From due to leased, p95",
            "s",
            {f"topk(10, {_quantile(0.95, 'menzil_wait_seconds', 'channel')})": "{{channel}}"},
            "Measured by workers that serve their own metrics.",
        ),
        Panel(
            "Share of tries that failed",
            "percentunit",
            {f"{FAILED_TRIES} / ({_rate('menzil_attempts_total', 'channel')} > 0)": "{{channel}}"},
        ),
    ],
    "Limits": [
        Panel("Channels that are held", "short", {f"sum by (reason) (menzil_channel_held{{{CHOSEN}}})": "{{reason}}"}),
        Panel("Concurrency in use", "percentunit", _top("menzil_channel_concurrency_used_ratio", "max")),
        Panel("Rate in use", "percentunit", _top("menzil_channel_rate_used_ratio", "max")),
        Panel("Ordering keys behind a dead letter", "short", _top("menzil_ordering_keys_blocked")),
    ],
    "Endpoints": [
        Panel(
            "Circuits that are not closed",
            "short",
            {f"max by (channel) (menzil_endpoint_circuit_state{{{CHOSEN}}}) > 0": "{{channel}}"},
            "1 half-open, 2 open.",
        ),
        Panel("Dead letters by channel", "short", _top("menzil_dead_letters")),
        Panel(
            "New dead letters",
            "short",
            {
                f"sum by (channel) (increase(menzil_messages_ended_total{{{CHOSEN},{DIED}}}[15m]))": "{{channel}}",
            },
            "In the last 15 minutes.",
        ),
    ],
    "Workers": [
        Panel("Workers", "short", {"sum by (status) (menzil_workers)": "{{status}}"}),
        Panel("Leased", "ops", {_each("rate(menzil_worker_leases_total[$__rate_interval])"): "{{instance}}"}),
        Panel(
            "Settled", "ops", {"sum by (result) (rate(menzil_worker_settles_total[$__rate_interval]))": "{{result}}"}
        ),
        Panel(
            "Time of a lease, p95", "s", {_quantile(0.95, "menzil_worker_poll_seconds", "instance", ""): "{{instance}}"}
        ),
        Panel("Reconnects", "short", {_each("increase(menzil_worker_reconnects_total[15m])"): "{{instance}}"}),
        Panel(
            "Databases served",
            "short",
            {"max by (database) (menzil_worker_database_up)": "{{database}}"},
            "Of workers that serve several: 0 while no worker serves it.",
        ),
        Panel(
            "Processor",
            "percentunit",
            {f"rate(process_cpu_seconds_total[$__rate_interval]) {OF_WORKERS}": "{{instance}}"},
        ),
        Panel(
            "Memory",
            "bytes",
            {f"process_resident_memory_bytes {OF_WORKERS}": "{{instance}}"},
        ),
    ],
    "Lake": [
        Panel("Readers of the feed behind", "s", {"max by (consumer) (menzil_feed_lag_seconds)": "{{consumer}}"}),
        Panel("Left to plans", "short", {"sum by (kind) (menzil_plan_remaining_messages)": "{{kind}}"}),
    ],
    "Database": [
        Panel("Oldest snapshot", "s", {"max(menzil_snapshot_age_seconds)": "held for"}),
        Panel("Dead rows", "short", {"max by (table) (menzil_dead_rows)": "{{table}}"}),
        Panel(
            "Since a job went well",
            "s",
            {"time() - max by (janitor) (menzil_janitor_last_success_timestamp_seconds)": "{{janitor}}"},
        ),
        Panel("Versions", "short", {"count by (version, schema_version) (menzil_build_info)": "{{version}}"}),
    ],
}


def dashboard() -> dict[str, Any]:
    """The whole page, as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for name, row in ROWS.items():
        panels.append({**_place(len(panels), 0, top, WIDTH, 1), "type": "row", "title": name, "collapsed": False})
        top += 1
        across = len(row) if row[0].stat else min(3, len(row))
        height = STAT_HEIGHT if row[0].stat else HEIGHT
        for number, panel in enumerate(row):
            left, line = number % across * (WIDTH // across), number // across * height
            panels.append(_panel(panel, _place(len(panels), left, top + line, WIDTH // across, height)))
        top += -(-len(row) // across) * height
    return {
        "uid": "menzil",
        "title": "menzil",
        "description": "Metrics come from menzil metrics --serve and menzil worker --metrics-port.",
        "tags": ["menzil", "postgresql", "queue"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), _channels()]},
        "annotations": {"list": []},
        "panels": panels,
    }


def _place(number: int, left: int, top: int, width: int, height: int) -> dict[str, Any]:
    return {"id": number + 1, "gridPos": {"x": left, "y": top, "w": width, "h": height}}


def _panel(panel: Panel, place: dict[str, Any]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": query, "legendFormat": legend or "__auto"}
        for number, (query, legend) in enumerate(panel.queries.items())
    ]
    return {
        **place,
        "type": "stat" if panel.stat else "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}


def _channels() -> dict[str, Any]:
    return {
        "name": "channel",
        "type": "query",
        "label": "Channel",
        "datasource": SOURCE,
        "query": "label_values(menzil_messages_waiting, channel)",
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
        "sort": 1,
    }


def written() -> str:
    """The file."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(written())
