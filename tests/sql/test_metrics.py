"""Metrics and workers: numbers that are exact for a small queue and cheap for a large one."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue

HTTP = {"url": "https://example.com/"}


def metrics(queue: Queue) -> dict[tuple[str, str | None], float]:
    """Values by name and by the one label there may be."""
    rows = queue.all("select metric_name, metric_value, labels from menzil.metrics()")
    found = {(row.metric_name, next(iter(row.labels.values()), None)): row.metric_value for row in rows}
    assert len(found) == len(rows)
    return found


def dead(queue: Queue, channel: str) -> None:
    queue.send(channel)
    assert queue.fail(queue.lease([channel]), "[PERMANENT] no") == "dead"


def test_an_empty_queue_has_its_zeros(queue: Queue) -> None:
    found = metrics(queue)
    for name in ("in_flight", "scheduled", "waiting_for_ordering_key", "oldest_message_age_seconds", "dlq_depth"):
        assert found[name, None] == 0
    for name in ("messages_sent_total", "messages_ended_total", "workers_alive"):
        assert found[name, None] == 0
    assert found["queue_depth", "pending"] == found["queue_depth", "processing"] == 0
    assert found["queue_depth_by_endpoint", "work"] == 0


def test_every_message_is_counted_where_it_is(queue: Queue) -> None:
    queue.call("channel_set", "other")
    for priority in (0, 5, 10):
        queue.send(priority=priority)
    queue.send("other")
    queue.send(scheduled_at="2099-01-01")
    for _ in range(3):
        queue.send(ordering_key="k")
    queue.lease(["other"])
    found = metrics(queue)
    assert found["queue_depth", "pending"] == 7
    assert found["queue_depth", "processing"] == found["in_flight", None] == 1
    assert found["scheduled", None] == 1
    assert found["waiting_for_ordering_key", None] == 2  # the first of the key is ready
    assert found["queue_depth_by_endpoint", "work"] == 7
    assert found["queue_depth_by_endpoint", "other"] == 0
    assert found["in_flight_by_endpoint", "other"] == 1
    assert found["messages_sent_total", None] == 8


def test_ended_messages_and_dead_letters_are_counted(queue: Queue) -> None:
    queue.call("channel_set", "other")
    queue.send()
    queue.complete(queue.lease())
    dead(queue, "other")
    dead(queue, "other")
    found = metrics(queue)
    assert 2 <= found["messages_ended_total", None] <= 3  # a register: its first count may be lost
    assert found["dlq_depth", None] == found["dlq_depth_by_endpoint", "other"] == 2
    assert ("dlq_depth_by_endpoint", "work") not in found
    queue.conn.execute("update menzil.dead_letter set status = 'redriven'")
    assert metrics(queue)["dlq_depth", None] == 0


@pytest.mark.parametrize("options", [{}, {"ordering_key": "k"}, {"scheduled_at": "2020-01-01"}, {"priority": 9}])
def test_the_oldest_message_is_seen_before_anybody_dequeues(queue: Queue, options: dict[str, Any]) -> None:
    queue.send(**options)
    pass_time(queue.conn, 100)
    queue.send()
    found = metrics(queue)
    age = found["oldest_message_age_seconds", None]
    assert age >= 100
    assert "scheduled_at" in options or age < 200
    assert found["oldest_message_age_seconds_by_endpoint", "work"] == age


def test_a_message_for_tomorrow_is_not_old_and_one_that_nobody_promoted_is(queue: Queue) -> None:
    queue.send(scheduled_at=queue.one("select clock_timestamp() + interval '50 s'"))
    assert metrics(queue)["oldest_message_age_seconds", None] == 0
    pass_time(queue.conn, 100)
    assert 50 <= metrics(queue)["oldest_message_age_seconds", None] < 100


@pytest.mark.parametrize("circuit", [0, 1, 2])
def test_the_circuit_of_every_endpoint_is_told(queue: Queue, circuit: int) -> None:
    queue.call("create_endpoint", "hook", "http", HTTP)
    queue.conn.execute("update menzil.gate set circuit = %s", [circuit])
    found = metrics(queue)
    assert found["endpoint_circuit_state", "hook"] == circuit
    assert ("endpoint_circuit_state", "work") not in found


def test_a_large_queue_is_counted_lane_by_lane_with_the_same_answer(queue: Queue) -> None:
    """The way of a large table, taken on a small one: with lanes that were visited, early places and late commits."""
    queue.call("channel_set", "other")
    for n in range(30):
        queue.send(("work", "other")[n % 2], priority=n % 3, **({"ordering_key": f"k{n % 4}"} if n % 5 == 0 else {}))
    queue.complete(*queue.dequeue(9))
    queue.send(scheduled_at="2020-01-01")
    queue.send(scheduled_at="2099-01-01")
    queue.defer(queue.lease())
    queue.conn.execute("select menzil.maintain()")
    look = "select * from menzil._waiting(%s, clock_timestamp(), %s) order by name"
    whole, by_lane = queue.all(look, 1000, 2**40), queue.all(look, 1000, 0)
    assert sum(row.count for row in whole) == 23
    assert by_lane == whole
    capped = queue.all(look, 2, 0)
    assert [row.capped for row in capped] == [True, True]
    assert all(row.count < full.count for row, full in zip(capped, whole, strict=True))
    assert [row.since_at for row in capped] == [row.since_at for row in whole]


@pytest.mark.slow
def test_a_queue_too_large_to_count_is_told_by_its_registers(queue: Queue) -> None:
    for _ in range(4):
        queue.conn.execute("select menzil.send_batch('work', array_fill('1'::jsonb, array[100000]))")
    found = metrics(queue)
    assert found["queue_depth_by_endpoint", "work"] == 10_000
    assert found["queue_depth", "pending"] == 400_000


def test_types_and_labels_are_what_a_monitoring_system_reads(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", HTTP)
    rows = queue.all("select metric_name, labels, metric_type, metric_value from menzil.metrics()")
    for row in rows:
        assert row.metric_type == ("counter" if row.metric_name.endswith("_total") else "gauge")
        assert row.metric_value is not None
        assert row.labels.keys() <= {"status", "endpoint", "janitor"}


def test_no_payload_and_no_secret_is_told(queue: Queue) -> None:
    secret = "canary-4711"
    queue.call("create_endpoint", "hook", "http", HTTP | {"auth": {"type": "bearer", "token": secret}})
    queue.send("hook", {"card": secret}, headers={"X-A": secret}, metadata={"a": secret}, ordering_key=secret)
    dead(queue, "work")
    for function in ("metrics", "health_check", "get_worker_status"):
        assert secret not in json.dumps(queue.all(f"select to_jsonb(r) from menzil.{function}() r"))


def test_watching_writes_nothing(queue: Queue) -> None:
    queue.send()
    with queue.conn.transaction():
        queue.conn.execute("set transaction read only")
        for function in ("metrics", "health_check", "get_worker_status"):
            queue.rows(function)


def test_a_monitor_may_watch_and_a_worker_may_not(queue: Queue, connect: Any) -> None:
    monitor, worker = connect(), connect()
    monitor.execute("set role menzil_monitor")
    worker.execute("set role menzil_worker")
    for function in ("metrics", "health_check", "get_worker_status"):
        monitor.execute(f"select * from menzil.{function}()")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            worker.execute(f"select * from menzil.{function}()")


def hello(queue: Queue, name: str, heartbeat: str = "0 s", **columns: Any) -> None:
    queue.conn.execute(
        """insert into menzil.worker (name, host, pid, version, channels, concurrency, in_flight, delivered, failed,
               started_at, heartbeat_at, stopping_at, stopped_at)
           values (%s, 'host', 42, '0.1.0', %s, 8, 3, 100, 2, now(), clock_timestamp() - %s::interval, %s, %s)""",
        [name, columns.get("channels"), heartbeat, columns.get("stopping_at"), columns.get("stopped_at")],
    )


def test_workers_are_alive_stopping_stopped_or_lost(queue: Queue) -> None:
    hello(queue, "alive", channels=["work"])
    hello(queue, "slow", "29 s")
    hello(queue, "lost", "31 s")
    hello(queue, "lost on the way out", "31 s", stopping_at="now")
    hello(queue, "stopping", stopping_at="now")
    hello(queue, "stopped", "1 hour", stopping_at="now", stopped_at="now")
    rows = {row.worker: row for row in queue.rows("get_worker_status")}
    assert {name: row.status for name, row in rows.items()} == {
        "alive": "alive",
        "slow": "alive",
        "lost": "lost",
        "lost on the way out": "lost",
        "stopping": "stopping",
        "stopped": "stopped",
    }
    seen = rows["alive"]
    assert (seen.host, seen.pid, seen.version, seen.channels, seen.concurrency) == ("host", 42, "0.1.0", ["work"], 8)
    assert (seen.in_flight, seen.delivered, seen.failed) == (3, 100, 2)
    assert rows["slow"].channels is None
    assert metrics(queue)["workers_alive", None] == 3


def test_a_worker_that_says_hello_is_alive_until_it_stops(queue: Queue) -> None:
    queue.call("worker_hello", "w", "host", 1, "0.1.0", ["work"], 4)
    assert queue.call("worker_heartbeat", "w", 2, 10, 1, False) is True
    (row,) = queue.rows("get_worker_status")
    assert (row.status, row.in_flight, row.delivered, row.failed) == ("alive", 2, 10, 1)
    queue.call("worker_stop", "w")
    assert queue.rows("get_worker_status")[0].status == "stopped"
