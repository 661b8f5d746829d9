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
    assert found["queue_depth_by_endpoint_is_lower_bound", "work"] == 0


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
    assert found["messages_ended_total", None] == 3
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
    found = metrics(queue)
    assert (found["oldest_message_age_seconds", None], found["scheduled", None]) == (0, 1)
    pass_time(queue.conn, 100)
    found = metrics(queue)
    assert 50 <= found["oldest_message_age_seconds", None] < 100
    assert (found["queue_depth", "pending"], found["scheduled", None]) == (1, 0), "it waits, and for no time"
    for small in (2**40, 0):
        (row,) = queue.all("select * from menzil._waiting(1000, clock_timestamp(), %s) where name = 'work'", small)
        assert (row.count, row.scheduled) == (1, 0)


@pytest.mark.parametrize("circuit", [0, 1, 2])
def test_the_circuit_of_every_endpoint_is_told(queue: Queue, circuit: int) -> None:
    queue.call("create_endpoint", "hook", "http", HTTP)
    queue.conn.execute("update menzil.gate set circuit = %s", [circuit])
    found = metrics(queue)
    assert found["endpoint_circuit_state", "hook"] == circuit
    assert ("endpoint_circuit_state", "work") not in found


def test_a_large_queue_is_counted_channel_by_channel_with_the_same_answer(queue: Queue) -> None:
    """The way of a large table, taken on a small one: with lanes that were visited, retries and late commits."""
    queue.call("channel_set", "other")
    for n in range(30):
        queue.send(("work", "other")[n % 2], priority=n % 3, **({"ordering_key": f"k{n % 4}"} if n % 5 == 0 else {}))
    queue.complete(*queue.dequeue(9))
    queue.send(scheduled_at="2020-01-01")
    for channel in ("work", "other"):
        for _ in range(3):
            queue.send(channel, scheduled_at="2099-01-01")
    queue.defer(queue.lease())
    queue.send_batch("work", 7)
    look = "select * from menzil._waiting(%s, clock_timestamp(), %s) order by name"
    whole, by_channel = queue.all(look, 1000, 2**40), queue.all(look, 1000, 0)
    waiting = dict(queue.all("select channel, count(*) from menzil.queue where status = 'pending' group by channel"))
    assert {row.name: row.count for row in whole} == waiting
    assert by_channel == whole
    capped = queue.all(look, 2, 0)
    assert [row.capped for row in capped] == [True, True]
    assert all(row.count < full.count for row, full in zip(capped, whole, strict=True))
    assert [row.scheduled for row in capped] == [2, 2]
    for row in whole:
        assert queue.all(look.replace("%s)", "%s, %s)"), 1000, 0, row.channel_id) == [row]


@pytest.mark.slow
def test_a_deep_queue_is_counted_by_its_runs(queue: Queue) -> None:
    for _ in range(4):
        queue.conn.execute("select menzil.send_batch('work', array_fill('1'::jsonb, array[100000]))")
    for taken in (0, 10):
        queue.dequeue(taken or 1)
        found = metrics(queue)
        depth = 400_000 - queue.one("select count(*) from menzil.queue where status = 'processing'")
        assert found["queue_depth_by_endpoint", "work"] == found["queue_depth", "pending"] == depth


def test_more_than_can_be_counted_is_told_by_the_registers(queue: Queue) -> None:
    queue.conn.execute(
        """select menzil.send_many(jsonb_agg(
               jsonb_build_object('channel', 'work', 'payload', 1, 'scheduled_at', '2099-01-01')))
             from generate_series(1, 12000)"""
    )
    assert metrics(queue)["queue_depth", "pending"] == 12_000
    with queue.conn.transaction(force_rollback=True):
        # A table that is large on the disk: rows of 32 MB that went.
        queue.conn.execute(
            """insert into menzil.scheduled select now(), -n, 0, 0, now(), 0, repeat('x', 1000)
                 from generate_series(1, 40000) n"""
        )
        queue.conn.execute("delete from menzil.scheduled where id < 0")
        found = metrics(queue)
        assert found["queue_depth_by_endpoint", "work"] == 10_000
        assert found["queue_depth_by_endpoint_is_lower_bound", "work"] == 1
        assert found["queue_depth", "pending"] == 12_000


def test_a_message_that_came_back_is_as_old_as_its_last_due_time(queue: Queue) -> None:
    """A retry returns to its old position; it could not have been leased before it was due again."""
    queue.send()
    pass_time(queue.conn, 4000)
    queue.fail(queue.lease(), retry_after="0.01")
    pass_time(queue.conn, 20)
    for _ in range(2):
        assert 19 <= metrics(queue)["oldest_message_age_seconds", None] < 100
        queue.call("maintain")  # from the schedule into the lane
    queue.send()
    queue.conn.execute("update menzil.message set created_at = created_at - interval '300 s' where id = 2")
    queue.conn.execute("update menzil.line set due_at = due_at - interval '300 s'")
    assert 299 <= metrics(queue)["oldest_message_age_seconds", None] < 400


def test_the_rest_of_a_run_is_as_old_as_its_first_message(queue: Queue) -> None:
    queue.send()
    pass_time(queue.conn, 1000)
    queue.send()
    queue.lease()
    assert queue.one("select gone from menzil.lane where tail_due is not null") == 1
    assert metrics(queue)["oldest_message_age_seconds", None] < 100


def test_a_cancelled_message_is_neither_counted_nor_old(queue: Queue) -> None:
    sent = queue.send()
    pass_time(queue.conn, 1000)
    assert queue.call("message_cancel", sent) is True
    found = metrics(queue)
    assert found["queue_depth", "pending"] == found["oldest_message_age_seconds", None] == 0


def test_types_and_labels_are_what_a_monitoring_system_reads(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", HTTP)
    rows = queue.all("select metric_name, labels, metric_type, metric_value from menzil.metrics()")
    for row in rows:
        assert row.metric_type == ("counter" if row.metric_name.endswith("_total") else "gauge")
        assert row.metric_value is not None
        assert row.labels.keys() <= {"status", "endpoint", "job"}


def test_no_payload_and_no_secret_is_told(queue: Queue) -> None:
    secret = "canary-4711"
    queue.call("create_endpoint", "hook", "http", HTTP | {"auth": {"type": "bearer", "token": secret}})
    queue.send("hook", {"card": secret}, headers={"X-A": secret}, metadata={"a": secret}, ordering_key=secret)
    dead(queue, "work")
    for function in set(WATCHING) - {"turns"}:  # which shows ordering keys
        assert secret not in json.dumps(queue.all(f"select to_jsonb(r) from menzil.{function}() r"))


WATCHING = ("metrics", "health_check", "get_worker_status", "get_endpoint_health", "channel_state", "turns")


def test_watching_writes_nothing_and_holds_no_lock_that_another_session_waits_for(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", HTTP)
    for channel in ("hook", "work"):
        queue.send_batch(channel, 5)
        queue.send(channel, ordering_key="k")
        queue.send(channel, scheduled_at="2099-01-01")
    for message in queue.dequeue(4, ["hook"]):
        queue.fail(message)  # news that no dequeue has folded
    queue.call("message_cancel", queue.send())
    with queue.conn.transaction():
        queue.conn.execute("set transaction read only")
        for function in WATCHING:
            queue.rows(function)
        modes = queue.all(
            "select distinct mode from pg_locks where pid = pg_backend_pid() and locktype not in ('virtualxid')"
        )
        assert modes == [("AccessShareLock",)]
        assert queue.one("select pg_current_xact_id_if_assigned()") is None


@pytest.mark.parametrize("function", WATCHING)
def test_watching_waits_for_no_consumer_and_no_consumer_waits_for_it(queue: Queue, connect: Any, function: str) -> None:
    queue.call("create_endpoint", "hook", "http", HTTP)
    sent = queue.send_batch("hook", 5)
    holder, watcher = Queue(connect(autocommit=False)), Queue(connect(autocommit=False))
    assert [message.id for message in holder.dequeue(2)] == sent[:2]  # its lane and gate stay locked
    watcher.conn.execute("set lock_timeout = '20s'")
    watcher.rows(function)
    holder.conn.commit()
    queue.conn.execute("set lock_timeout = '20s'")
    assert [message.id for message in queue.dequeue(5)] == sent[2:]


def test_a_monitor_may_watch_and_a_worker_may_not(queue: Queue, connect: Any) -> None:
    monitor, worker = connect(), connect()
    monitor.execute("set role menzil_monitor")
    worker.execute("set role menzil_worker")
    for function in WATCHING:
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
