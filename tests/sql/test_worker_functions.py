"""What a worker asks the database besides messages: configs, the registry, jobs, the inbox, the wake-up call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue

HOOK = {"url": "https://example.com/hook", "auth": {"type": "bearer", "token": "s3cret-token"}}


def test_a_worker_gets_configs_with_their_secrets_once(queue: Queue) -> None:
    made = queue.call("create_endpoint", "hook", "http", HOOK)
    (row,) = queue.rows("delivery_configs", ["hook"])
    assert (row.id, row.name, row.protocol, row.config["auth"]["token"]) == (made, "hook", "http", "s3cret-token")
    assert queue.rows("delivery_configs", ["hook"], [row.updated_at]) == []
    queue.call("alter_endpoint", "hook", {"url": "https://example.com/new", "auth": HOOK["auth"]})
    (changed,) = queue.rows("delivery_configs", ["hook"], [row.updated_at])
    assert changed.config["url"] == "https://example.com/new"


def test_a_changed_secret_alone_is_a_change(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", HOOK)
    (row,) = queue.rows("delivery_configs", ["hook"])
    queue.call("alter_endpoint", "hook", {**HOOK, "auth": {"type": "bearer", "token": "other"}})
    (changed,) = queue.rows("delivery_configs", ["hook"], [row.updated_at])
    assert changed.config["auth"]["token"] == "other"


def test_a_name_that_is_no_endpoint_comes_without_a_config(queue: Queue) -> None:
    queue.call("channel_set", "work")
    rows = queue.rows("delivery_configs", ["work", "nobody"])
    assert [(row.name, row.config) for row in rows] == [("work", None), ("nobody", None)]


def test_a_dropped_endpoint_still_has_a_destination_for_what_is_left(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", HOOK)
    queue.call("drop_endpoint", "hook")
    (row,) = queue.rows("delivery_configs", ["hook"])
    assert row.config["url"] == HOOK["url"]


def test_workers_are_registered_heard_and_forgotten(queue: Queue) -> None:
    assert queue.call("worker_heartbeat", "w1") is False
    queue.call("worker_hello", "w1", "host", 42, "1.0", ["a"], 10)
    assert queue.call("worker_heartbeat", "w1", 3, 100, 5) is True
    row = queue.one("select in_flight, delivered, failed, stopped_at from menzil.worker where name = 'w1'")
    assert tuple(row) == (3, 100, 5, None)
    queue.call("worker_stop", "w1")
    queue.conn.execute("update menzil.worker set stopped_at = stopped_at - interval '2 days'")
    assert queue.call("cleanup_workers") == 1
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        queue.call("worker_hello", None, "host", 42, "1.0")


def status_of(queue: Queue, name: str) -> list[str]:
    return sorted(row.status for row in queue.rows("get_worker_status") if row.worker == name)


def silent_for(queue: Queue, seconds: int, instance: str) -> None:
    queue.conn.execute(
        "update menzil.worker set started_at = started_at - %s * interval '1 s',"
        " heartbeat_at = heartbeat_at - %s * interval '1 s' where instance = %s",
        (seconds + 1, seconds, instance),
    )


def hello(queue: Queue, instance: str) -> None:
    queue.call("worker_hello", "shop", "host", 1, "1.0", None, 10, instance)


def beat(queue: Queue, instance: str) -> bool:
    known: bool = queue.call("worker_heartbeat", "shop", 0, 0, 0, False, instance)
    return known


def test_a_worker_that_stops_does_not_hide_another_of_its_name(queue: Queue) -> None:
    for instance in ("a", "b"):
        hello(queue, instance)
    queue.call("worker_stop", "shop", "a")
    assert status_of(queue, "shop") == ["alive", "stopped"]
    assert beat(queue, "b") is True
    alive = "select count(*)::int from menzil.metrics() where metric_name = 'workers_alive' and metric_value = 1"
    assert queue.one(alive) == 1


def test_a_worker_that_fell_silent_beside_another_of_its_name_is_reported_as_lost(queue: Queue) -> None:
    for instance in ("a", "b"):
        hello(queue, instance)
    silent_for(queue, 40, "a")
    queue.conn.execute("update menzil.worker set started_at = started_at - interval '1 hour' where instance = 'b'")
    assert beat(queue, "b") is True
    assert status_of(queue, "shop") == ["alive", "lost"]


def test_a_worker_started_again_after_a_crash_takes_the_place_of_the_dead_one(queue: Queue) -> None:
    hello(queue, "dead")
    silent_for(queue, 10, "dead")  # it still counts as alive: the crash was a moment ago
    hello(queue, "next")
    assert status_of(queue, "shop") == ["alive", "alive"]
    silent_for(queue, 30, "dead")
    assert beat(queue, "next") is True
    assert status_of(queue, "shop") == ["alive"]
    silent_for(queue, 60, "next")
    hello(queue, "third")
    assert status_of(queue, "shop") == ["alive"]
    assert beat(queue, "next") is False


def test_workers_of_an_older_release_stay_in_the_registry_beside_new_ones(queue: Queue) -> None:
    queue.call("worker_hello", "shop", "host", 1, "0.1.0", ["a"], 10)
    hello(queue, "new")
    assert queue.call("worker_heartbeat", "shop", 1, 2, 3, False) is True
    queue.call("worker_stop", "shop")
    assert status_of(queue, "shop") == ["alive", "stopped"]


def test_a_job_is_claimed_once_per_interval(queue: Queue, connect: Callable[..., psycopg.Connection]) -> None:
    jobs = queue.one("select count(*) from menzil.jobs")
    queue.conn.execute(
        "update menzil.job set next_at = now() - interval '1 day' where name in ('expiry', 'partitions')"
    )
    queue.conn.execute("update menzil.job set next_at = now() + interval '1 day' where next_at = '-infinity'")
    assert {queue.call("job_claim", "w1"), queue.call("job_claim", "w2")} == {"expiry", "partitions"}
    assert queue.call("job_claim", "w3") is None
    assert queue.call("job_run", "expiry") == 0
    row = queue.one("select last_count, last_worker, last_error from menzil.jobs where name = 'expiry'")
    assert (row.last_count, row.last_error) == (0, None)
    assert row.last_worker in ("w1", "w2")
    queue.conn.execute("update menzil.job set next_at = now() where name = 'expiry'")
    with connect(autocommit=False) as other:
        assert other.execute("select menzil.job_claim('w3')").fetchone() == ("expiry",)
        # Another round is under way and not committed: no worker waits for it.
        assert queue.call("job_claim", "w4") is None
    with pytest.raises(psycopg.errors.UndefinedObject):
        queue.call("job_run", "no such job")
    assert queue.one("select count(*) from menzil.jobs") == jobs


def test_every_job_runs_in_a_transaction_of_its_own(queue: Queue) -> None:
    queue.conn.execute("call menzil.run_jobs('w1')")
    rows = queue.all("select name, last_worker, last_error, next_at > now() as later from menzil.jobs")
    assert rows
    assert [row for row in rows if row[1:] != ("w1", None, True)] == []


def test_the_inbox_knows_what_it_has_seen_and_forgets_with_a_rollback(queue: Queue) -> None:
    assert queue.call("inbox_claim", "billing", "17") is True
    assert queue.call("inbox_claim", "billing", "17") is False
    assert queue.call("inbox_claim", "shipping", "17") is True
    with queue.conn.transaction(force_rollback=True):
        assert queue.call("inbox_claim", "billing", "18") is True
    assert queue.call("inbox_claim", "billing", "18") is True
    assert queue.call("cleanup_inbox") == 0
    queue.conn.execute("update menzil.inbox set seen_at = seen_at - interval '8 days' where message_key = '17'")
    assert queue.call("cleanup_inbox") == 2
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        queue.call("inbox_claim", "billing", None)


def woken(listener: psycopg.Connection, act: Callable[[], Any]) -> int:
    """How many notifications arrive for what `act` does, until a mark of our own arrives."""
    act()
    listener.execute("select pg_notify('menzil_wake', 'mark')")
    for count, note in enumerate(listener.notifies(timeout=60)):
        if note.payload == "mark":
            return count
    raise AssertionError("no mark came back")


def test_only_the_first_send_after_a_worker_began_to_wait_wakes_it(
    queue: Queue, connect: Callable[..., psycopg.Connection]
) -> None:
    queue.call("channel_set", "work")
    with connect() as listener:
        listener.execute("listen menzil_wake")
        assert woken(listener, queue.send) == 0
        for send in (
            queue.send,
            lambda: queue.send_batch("work", 3),
            lambda: queue.call("send_many", '[{"channel": "work", "payload": 1}]'),
            lambda: queue.call("message_create", "work", b"x"),
            lambda: queue.send(ordering_key="k"),
        ):
            queue.call("worker_wait")
            assert woken(listener, send) == 1
            assert woken(listener, send) == 0


def test_no_wake_up_call_when_the_setting_is_off(queue: Queue, connect: Callable[..., psycopg.Connection]) -> None:
    queue.call("channel_set", "work")
    queue.call("set_setting", "notify", "off")
    with connect() as listener:
        listener.execute("listen menzil_wake")
        queue.call("worker_wait")
        assert woken(listener, queue.send) == 0


def test_a_worker_that_waits_is_told_when_something_is_due(queue: Queue) -> None:
    queue.call("channel_set", "work")
    assert queue.call("worker_wait") is None, "nothing is due, however long it waits"
    queue.conn.execute("select menzil.send_with_options('work', '1', p_scheduled_at => now() + interval '1 hour')")
    assert queue.dequeue() == []
    assert 3_000 < queue.call("worker_wait") <= 3_600


def test_a_worker_does_not_wait_while_the_log_has_more_than_a_dequeue_folds(queue: Queue) -> None:
    queue.call("channel_set", "work")
    queue.call("channel_set", "unread")
    for _ in range(3_000):
        queue.send("unread")
    sent = queue.send("work")
    assert queue.call("worker_wait") == 0
    (message,) = until(lambda: queue.dequeue(channels=["work"]))
    assert message.id == sent
    assert queue.call("worker_wait") > 0, "the end of its lease"


def test_responses_are_kept_with_the_message_and_with_each_try(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", HOOK)
    first, second, third = queue.send_batch("hook", 3)
    a, b, c = queue.dequeue(3)
    answers = ['{"status": 200, "body": "a"}', None]
    settled = queue.all("select * from menzil.message_complete(%s, %s, %s::jsonb[])", [b.id, a.id], [1, 1], answers)
    assert {row.id: row.outcome for row in settled} == {first: "settled", second: "settled"}
    assert queue.archived(second).response == {"status": 200, "body": "a"}
    assert queue.archived(first).response is None
    failed = '{"status": 400, "duration_ms": 3}'
    queue.all(
        "select * from menzil.message_fail(%s, %s, %s, null, %s::jsonb[])", [c.id], [1], ["[PERMANENT] no"], [failed]
    )
    assert queue.archived(third).response == {"status": 400, "duration_ms": 3}
    (attempt,) = queue.all("select status_code, duration_ms from menzil.attempts where message_id = %s", third)
    assert tuple(attempt) == (400, 3)
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        queue.all("select * from menzil.message_complete(%s, %s, %s::jsonb[])", [1, 2], [1, 1], ["1"])


def test_a_message_whose_lease_ran_out_is_a_suspect_until_it_is_settled(queue: Queue) -> None:
    queue.call("channel_set", "work")
    lost, failed, fresh = (queue.call("send", "work", {"number": number}) for number in (1, 2, 3))
    queue.rows("message_dequeue", 1, 1)
    pass_time(queue.conn, 1)
    queue.call("recover_stale_messages")
    (row,) = [row for row in queue.rows("message_dequeue", 60000, 3) if row.id == failed]
    queue.call("message_fail", failed, row.num_attempts, "no")
    assert [row[0] for row in queue.rows("worker_suspects", [lost, failed, fresh])] == [lost]
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        queue.rows("worker_suspects", None)
