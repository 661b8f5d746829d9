"""The health check: fine when all is well, and one row that says what to do for each thing that is not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue

CHECKS = {
    "schema_version", "copy", "standby", "backlog", "oldest_message", "workers", "leases", "places", "jobs", "pulse",
    "schedules", "circuits", "dead_letters", "ordering_keys", "bridges", "archive_default", "archive_partitions",
    "snapshots",
}  # fmt: skip


def health(queue: Queue) -> dict[str, Any]:
    rows = {row.check_name: row for row in queue.rows("health_check")}
    assert rows.keys() == CHECKS
    return rows


def complaints(queue: Queue) -> dict[str, str]:
    """What is not fine; each of it comes with a hint, and nothing else does."""
    rows = health(queue)
    for row in rows.values():
        assert row.detail
        assert row.status in ("ok", "warning", "error")
        assert (row.hint is None) == (row.status == "ok")
    return {name: row.status for name, row in rows.items() if row.status != "ok" and name != "snapshots"}


def test_a_queue_at_work_is_fine(queue: Queue) -> None:
    queue.send()
    queue.send(ordering_key="k")
    queue.send(scheduled_at="2099-01-01")
    queue.lease()
    assert complaints(queue) == {}
    installed = queue.one("select installed from menzil.schema_window()")
    assert health(queue)["schema_version"].detail == f"The schema is at version {installed}."


@pytest.mark.parametrize(("age", "status"), [(100, None), (400, "warning"), (4000, "error")])
@pytest.mark.parametrize("options", [{}, {"ordering_key": "k"}, {"priority": 3}])
def test_a_message_that_nobody_leases(queue: Queue, age: int, status: str | None, options: dict[str, Any]) -> None:
    queue.send(**options)
    pass_time(queue.conn, age)
    assert complaints(queue) == ({"oldest_message": status} if status else {})
    if status:
        assert "'work'" in health(queue)["oldest_message"].detail
        assert re.search(r"has waited (6 min \d+ s|1 h \d+ min), in", health(queue)["oldest_message"].detail)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        ("-5 s", "0 s"), ("0.9 s", "0 s"), ("59 s", "59 s"), ("60 s", "1 min"), ("3599 s", "59 min 59 s"),
        ("1 h", "1 h"), ("86399 s", "23 h 59 min"), ("1 day 01:00:59", "1 d 1 h"), ("400 days", "400 d"),
    ],
)  # fmt: skip
def test_a_length_of_time_reads_the_same_in_every_session(queue: Queue, length: str, words: str) -> None:
    queue.conn.execute("set intervalstyle = 'iso_8601'")
    assert queue.one("select menzil._span_text(%s::interval)", length) == words


@pytest.mark.parametrize(
    ("limits", "why", "knob"),
    [
        ({"p_release_interval_ms": 9_000_000, "p_release_count": 1}, "which is at its rate limit", "--release-count N"),
        ({"p_max_concurrency": 1}, "whose slots are all taken", "--max-concurrency N"),
    ],
)
def test_a_channel_at_its_limits_is_not_told_to_get_a_worker(
    queue: Queue, limits: dict[str, int], why: str, knob: str
) -> None:
    queue.call("channel_set", "work", **limits)
    queue.send_batch("work", 2)
    (leased,) = queue.all("select * from menzil.message_dequeue(20000000, 5, array['work'])")
    assert leased.num_attempts == 1
    pass_time(queue.conn, 400)
    found = health(queue)["oldest_message"]
    assert (found.status, found.detail.endswith(f"in channel 'work', {why}.")) == ("warning", True)
    assert found.hint == f"If it may go faster, raise its limit: menzil channel set work {knob}"


@pytest.mark.parametrize(
    ("channels", "told"),
    [
        (["a"], None),
        (["a", "b"], "'b', too."),
        (list("abcdef"), "'b', 'c', 'd', 'e', 'f', too."),
        (list("abcdefghi"), "'b', 'c', 'd', 'e', 'f' and 3 more, too."),
    ],
)
def test_other_channels_that_wait_are_named(queue: Queue, channels: list[str], told: str | None) -> None:
    for name in [*channels, "young"]:
        queue.call("channel_set", name)
    for name in channels:
        queue.send(name)
        pass_time(queue.conn, 400)
    queue.send("young")
    found = health(queue)["oldest_message"].detail
    assert "in channel 'a'." in found
    assert found.partition("Messages have waited for more than 5 minutes in ")[2] == (told or "")


def test_messages_that_are_held_on_purpose_are_not_late(queue: Queue) -> None:
    queue.send()
    pass_time(queue.conn, 4000)
    queue.call("channel_pause", "work")
    assert complaints(queue) == {}


@pytest.mark.parametrize(("limit", "status"), [("0", None), ("100", None), ("12", "warning"), ("10", "error")])
def test_a_backlog_near_its_limit(queue: Queue, limit: str, status: str | None) -> None:
    queue.send_batch("work", 10)
    queue.conn.execute("select menzil.set_setting('max_queue_size', %s)", [limit])
    assert complaints(queue) == ({"backlog": status} if status else {})


def test_a_lost_worker(queue: Queue) -> None:
    queue.call("worker_hello", "w1", "host", 1, "0.1.0", None, 4)
    assert complaints(queue) == {}
    queue.conn.execute("update menzil.worker set heartbeat_at = clock_timestamp() - interval '1 hour'")
    assert complaints(queue) == {"workers": "warning"}
    assert "w1" in health(queue)["workers"].hint
    queue.call("worker_stop", "w1")
    assert complaints(queue) == {}


def test_a_lease_that_nobody_takes_back(queue: Queue) -> None:
    queue.send()
    message = queue.lease(lock_ms=1000)
    pass_time(queue.conn, 30)
    assert complaints(queue) == {}
    pass_time(queue.conn, 40)
    assert complaints(queue) == {"leases": "warning"}
    queue.call("recover_stale_messages")
    assert complaints(queue) == {}
    assert queue.status(message.id).status == "pending"


def test_a_job_that_failed_or_fell_silent(queue: Queue) -> None:
    queue.conn.execute("call menzil.run_jobs('w')")
    assert complaints(queue) == {}
    with queue.conn.transaction(force_rollback=True):
        queue.conn.execute("update menzil.job set call = '1 / 0' where name = 'expiry'")
        assert queue.call("job_run", "expiry") is None
        assert complaints(queue) == {"jobs": "warning"}
        assert "'expiry' failed: 22012: division by zero" in health(queue)["jobs"].detail
    assert queue.call("job_run", "expiry") == 0
    queue.conn.execute(
        "update menzil.job set next_at = clock_timestamp() - interval '11 minutes' where name = 'expiry'"
    )
    assert complaints(queue) == {"jobs": "warning"}
    assert "'expiry' is overdue" in health(queue)["jobs"].detail
    queue.conn.execute("call menzil.run_jobs('w')")
    assert complaints(queue) == {}


def test_jobs_that_no_worker_ever_ran_are_not_missed(queue: Queue) -> None:
    assert health(queue)["jobs"].detail == "No job has run yet: jobs run inside workers."
    assert complaints(queue) == {}


LOSSES = {
    "line": "delete from menzil.line",
    "run": "delete from menzil.run",
    "part of a run": "update menzil.lane set gone = gone + 1, v = v + 1 where tail_due is not null",
    "lease": "delete from menzil.lease",
    "scheduled": "delete from menzil.scheduled",
    "key_queue": "delete from menzil.key_queue where waits = 1",
}


@pytest.mark.parametrize("lost", LOSSES)
def test_a_live_message_without_a_place(queue: Queue, lost: str) -> None:
    queue.send(scheduled_at="2099-01-01")
    for _ in range(2):
        queue.send(ordering_key="k")
    queue.send_batch("work", 40)
    queue.lease()
    queue.send_batch("work", 5)
    assert complaints(queue) == {}
    assert health(queue)["places"].detail == "48 live messages were looked at: each has its place."
    with queue.conn.transaction(force_rollback=True):
        queue.conn.execute(LOSSES[lost])
        assert complaints(queue) == {"places": "error"}
        row = health(queue)["places"]
        assert "of 48 live messages" in row.detail
        assert "menzil.rebuild()" in row.hint
    assert complaints(queue) == {}


def test_a_line_that_no_fold_looks_for(queue: Queue) -> None:
    queue.send()
    queue.complete(queue.lease())
    sent = queue.send()
    with queue.conn.transaction(force_rollback=True):
        queue.conn.execute("update menzil.line set xid = '3'")
        assert queue.dequeue() == []
        assert queue.status(sent).status == "pending"
        assert complaints(queue) == {"places": "error"}
    assert complaints(queue) == {}
    assert queue.lease().id == sent


def test_a_schedule_that_does_not_fire(queue: Queue) -> None:
    queue.call("schedule_create", "nightly", "0 3 * * *", "UTC", "work", {})
    assert complaints(queue) == {}
    queue.conn.execute("update menzil.schedule set next_at = clock_timestamp() - interval '2 minutes'")
    assert complaints(queue) == {"schedules": "warning"}
    queue.call("schedule_pause", "nightly")
    assert complaints(queue) == {}


def test_an_open_circuit(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    assert complaints(queue) == {}
    queue.conn.execute("update menzil.gate set circuit = 2")
    assert complaints(queue) == {"circuits": "warning"}
    assert "hook" in health(queue)["circuits"].detail


def test_a_circuit_is_seen_open_before_a_dequeue_has_folded_the_news(queue: Queue) -> None:
    queue.call("set_setting", "circuit_breaker_threshold", "1")
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    queue.send("hook")
    queue.fail(queue.lease())
    assert queue.one("select max(circuit) from menzil.gate") == 0
    assert complaints(queue) == {"circuits": "warning"}
    assert queue.rows("get_endpoint_health")[0].circuit_state == "open"


def test_dead_letters_and_the_keys_they_block(queue: Queue) -> None:
    queue.call("channel_set", "strict", p_on_dead="block")
    queue.send("work")
    queue.fail(queue.lease(["work"]), "[PERMANENT] no")
    assert complaints(queue) == {"dead_letters": "warning"}
    queue.send("strict", ordering_key="k")
    queue.fail(queue.lease(["strict"]), "[PERMANENT] no")
    assert complaints(queue) == {"dead_letters": "warning", "ordering_keys": "warning"}
    assert "'strict'" in health(queue)["ordering_keys"].detail


def test_an_archive_that_is_not_ready_for_what_comes(queue: Queue) -> None:
    with queue.conn.transaction(force_rollback=True):
        queue.conn.execute("delete from menzil.archive_month where month_start > now() + interval '2 months'")
        assert complaints(queue) == {"archive_partitions": "warning"}
        queue.conn.execute("delete from menzil.archive_month where month_start <= now()")
        assert complaints(queue) == {"archive_partitions": "error"}
    assert complaints(queue) == {}
    queue.send()
    queue.complete(queue.lease())
    with queue.conn.transaction(force_rollback=True):
        queue.conn.execute("update menzil.message set created_at = '1999-01-01'")
        assert complaints(queue) == {"archive_default": "warning"}


def test_the_oldest_snapshot_is_named_with_the_process_that_holds_it(queue: Queue, connect: Any) -> None:
    holder = connect(autocommit=False, application_name="forgotten report")
    holder.execute("set transaction isolation level repeatable read")
    holder.execute("select 1 from menzil.channel")
    row = health(queue)["snapshots"]
    assert row.status == "ok"  # it is young
    assert f"process {holder.info.backend_pid} of 'forgotten report'" in row.detail
    assert "menzil.channel" not in row.detail
    holder.rollback()
    assert "forgotten report" not in health(queue)["snapshots"].detail


def test_a_lane_that_its_gate_holds_without_a_reason_is_found_and_repaired(queue: Queue) -> None:
    queue.call("channel_set", "work", 1)
    queue.send_batch("work", 3)
    leased = queue.dequeue(3)
    assert len(leased) == 1
    assert queue.dequeue(3) == []
    assert complaints(queue) == {}, "the channel is full, so its lane is held rightly"
    queue.conn.execute("update menzil.gate set in_flight = 0")
    assert complaints(queue) == {"places": "error"}
    row = health(queue)["places"]
    assert "'work'" in row.detail
    assert "menzil.rebuild()" in row.hint
    queue.call("rebuild")
    assert complaints(queue) == {}
