"""Metrics for Prometheus: their names, types, labels, and where the numbers come from.

The exporter writes no other metric, the reference page shows this table, and tests compare both with the output and
with the dashboard and the alerts in grafana/.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

Kind = Literal["gauge", "counter", "histogram", "info"]

#: Channels that get a label of their own; all others are OTHER.
MOST = 200
OTHER = "_other"
#: The label that comes before the others where several databases are served.
DATABASE = "database"

#: Why a channel is held, as channel_state() says it.
REASONS = ("paused", "disabled", "released", "circuit", "rest", "concurrency", "rate")
STATUSES = ("completed", "failed", "expired", "cancelled")
WORKERS = ("alive", "stopping", "stopped", "lost")


class Family(NamedTuple):
    """One metric. `name` is what a query says; a histogram adds _bucket to it."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    source: str
    text: str


def _table(text: str) -> tuple[Family, ...]:
    """Read one metric a line: name, type, labels, source, what it says."""
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return tuple(
        Family(name, cast(Kind, kind), tuple(labels.split(", ")) if labels else (), source, said)
        for name, kind, labels, source, said in rows
    )


#: What the exporter of a database says.
QUEUE = _table("""
menzil_up | gauge |  | the scrape | 1 if the database answered, 0 if not.
menzil_build_info | info | version, schema_version | the scrape | Versions of menzil and of its schema.
menzil_queue_depth | gauge |  | metrics() | Messages that wait in all channels, by registers beyond what is counted.
menzil_messages_waiting | gauge | channel | metrics() | Messages that wait, scheduled ones included.
menzil_messages_waiting_is_lower_bound | gauge | channel | metrics() | 1 if more may wait, and longer, than was counted.
menzil_messages_scheduled | gauge |  | metrics() | Messages that wait for their time.
menzil_messages_behind_key | gauge |  | metrics() | Messages that wait for another one of their ordering key.
menzil_messages_in_flight | gauge | channel | metrics() | Messages under lease.
menzil_oldest_waiting_seconds | gauge | channel | metrics() | Age of the oldest message that could be leased.
menzil_dead_letters | gauge | channel | metrics() | Dead letters that wait for a decision, up to 100,000 in all.
menzil_messages_sent_total | counter | channel | pulse_totals() | Messages sent.
menzil_messages_ended_total | counter | channel, status | pulse_totals() | Messages that ended, by how.
menzil_attempts_total | counter | channel, result, status_class | pulse_totals() | Tries, failed ones by HTTP status.
menzil_delivery_seconds | histogram | channel | pulse_totals() | Time from send to end.
menzil_attempt_duration_seconds | histogram | channel | pulse_totals() | Time of a try in a worker.
menzil_channel_held | gauge | channel, reason | channel_state() | 1 if the channel is held for this reason.
menzil_channel_concurrency_used_ratio | gauge | channel | channel_state() | Share of max_concurrency in use.
menzil_channel_rate_used_ratio | gauge | channel | channel_state() | Share of the rate of releases in use.
menzil_endpoint_circuit_state | gauge | channel | metrics() | 0 closed, 1 half-open, 2 open.
menzil_ordering_keys_blocked | gauge | channel | channel_state() | Ordering keys that wait behind a dead letter.
menzil_workers | gauge | status | get_worker_status() | Workers, by status.
menzil_janitor_last_success_timestamp_seconds | gauge | janitor | jobs | When a round of the job last went well.
menzil_feed_lag_seconds | gauge | consumer | consumers | Age of the oldest row that a reader of the feed has not had.
menzil_snapshot_age_seconds | gauge |  | metrics() | How long the oldest snapshot of another session is held.
menzil_dead_rows | gauge | table | pg_stat_user_tables | Dead rows of the 20 tables that have the most.
menzil_plan_remaining_messages | gauge | kind | plans | Messages that plans under way have still to do.
""")

#: What a worker says about itself, with --metrics-port.
WORKER = _table("""
menzil_worker_leases_total | counter |  | the worker | Messages leased.
menzil_worker_settles_total | counter | result | the worker | Messages that left the worker, by what came out.
menzil_worker_reconnects_total | counter |  | the worker | Connections to the database that broke and came back.
menzil_worker_poll_seconds | histogram |  | the worker | Time of a call that leases.
menzil_worker_database_up | gauge |  | the worker | 1 while the database is served; only with several databases.
menzil_wait_seconds | histogram | channel | the worker | Time from when a message was due until its first lease.
""")
FAMILIES = {family.name: family for family in (*QUEUE, *WORKER)}

#: Upper bounds of histograms of the pulse, in seconds.
PULSE_BOUNDS = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0, 3600.0, 21600.0)
#: Of a call that leases.
POLL_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
