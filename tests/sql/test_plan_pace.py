"""How fast a plan goes, and what can be seen of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.sql.clock import until
from tests.sql.dying import letter
from tests.sql.planning import complete_all, copies, draft, finish, kill_all, outcome, plan, running
from tests.sql.queue import Queue, ids


@pytest.fixture
def hook(queue: Queue) -> str:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    return "hook"


# --- pace -------------------------------------------------------------------------------------------------------------


def dues(queue: Queue) -> list[Any]:
    return [row[0] for row in queue.all("select due_at from menzil.scheduled order by due_at, id")]


def test_a_rate_spreads_messages_evenly_over_all_steps(queue: Queue) -> None:
    complete_all(queue, "work", 200)
    number = running(queue, "replay", 10, channel="work")  # twenty seconds: a slow step does not come late
    finish(queue, number, 30)
    found = dues(queue)
    assert len(found) == 200
    assert timedelta(seconds=19) < found[-1] - found[0] < timedelta(seconds=22)
    for at in found:
        assert sum(at <= other < at + timedelta(seconds=10) for other in found) <= 102
    assert [row.id for row in queue.all("select id from menzil.scheduled order by due_at, id")] == sorted(
        queue.waiting()
    )
    row = plan(queue, number)
    assert (row.done, row.status, row.last_due_at) == (200, "running", found[-1])


def test_a_plan_with_a_rate_is_done_when_its_last_message_is_due(queue: Queue) -> None:
    complete_all(queue, "work", 20)
    number = running(queue, "replay", 50, channel="work")
    finish(queue, number)
    assert plan(queue, number).status == "running"
    until(lambda: queue.call("plan_step", number) or plan(queue, number).status == "done")


def test_no_more_than_an_hour_is_scheduled_ahead(queue: Queue) -> None:
    complete_all(queue, "work", 100)
    number = running(queue, "replay", 0.01, channel="work")
    assert [queue.call("plan_step", number) for _ in range(3)] == [36, 0, 0]
    assert plan(queue, number).last_due_at < queue.now() + timedelta(hours=1)
    assert plan(queue, number).last_error is None


def test_a_rate_of_less_than_one_an_hour_goes_one_by_one(queue: Queue) -> None:
    complete_all(queue, "work", 3)
    number = running(queue, "replay", 0.0001, channel="work")
    assert [queue.call("plan_step", number) for _ in range(2)] == [1, 0]
    assert dues(queue)[0] > queue.now() + timedelta(hours=2)


def test_workers_keep_a_plan_no_more_than_a_minute_ahead(queue: Queue) -> None:
    complete_all(queue, "work", 1000)
    number = running(queue, "replay", 10, channel="work")
    assert queue.call("job_run", "plans") in (599, 600)
    assert queue.call("job_run", "plans") == 0
    queue.conn.execute("update menzil.plan_progress set last_due_at = last_due_at - interval '40 s'")
    assert 390 < queue.call("job_run", "plans") < 410
    assert 0.5 < (plan(queue, number).last_due_at - queue.now()).total_seconds() / 60 <= 1


def test_a_plan_that_was_left_alone_does_not_catch_up(queue: Queue) -> None:
    """After an outage the pace goes on from now: what was not made in time is not due at once."""
    complete_all(queue, "work", 100)
    number = running(queue, "replay", 10, channel="work")
    queue.call("plan_step", number, 20)
    queue.conn.execute("update menzil.plan_progress set last_due_at = last_due_at - interval '1 h'")
    queue.call("plan_step", number, 20)
    found = [row[0] for row in queue.all("select due_at from menzil.scheduled order by id")][-20:]
    assert found[-1] - found[0] >= timedelta(seconds=1.8)
    assert found[0] <= queue.now() + timedelta(seconds=1)


# --- looking ----------------------------------------------------------------------------------------------------------


def test_targets_say_whom_a_plan_reaches_and_with_what_it_begins(queue: Queue, hook: str) -> None:
    dead = kill_all(queue, hook, 5)
    numbers = [letter(queue, message).id for message in dead]
    number = draft(queue, "redrive", channel=hook)
    (row,) = queue.rows("plan_targets", number)
    assert (row.channel, row.is_endpoint, row.counted, row.done, row.finished) == (hook, True, 5, 0, False)
    assert (row.waits_for, row.room, row.first_ids, row.last_id) == (None, None, numbers[:3], numbers[-1])
    queue.call("channel_set", "work", p_max_size=10)
    sent = complete_all(queue, "work", 4)
    queue.send()
    (row,) = queue.rows("plan_targets", draft(queue, "replay", channel="work"))
    assert (row.room, row.first_ids, row.last_id) == (9, sent[:3], sent[-1])


def test_the_outcome_counts_every_message_once(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "1")
    kill_all(queue, count=8)
    number = running(queue, "redrive", channel="work")
    finish(queue, number)
    made = queue.dequeue(5)
    assert outcome(queue, number) == {"in_flight": 5, "waiting": 3}
    queue.complete(*made[:2])
    queue.fail(made[2], "[PERMANENT] again")
    queue.fail(made[3])
    assert outcome(queue, number) == {"completed": 2, "waiting": 3, "dead": 1, "retrying": 1, "in_flight": 1}
    queue.call("message_cancel", max(queue.waiting()))
    assert outcome(queue, number)["cancelled"] == 1
    assert sum(outcome(queue, number).values()) == 8


def test_parts_that_have_ended_are_noted_and_asked_for_no_more(queue: Queue) -> None:
    kill_all(queue, count=30)
    number = running(queue, "redrive", channel="work")
    finish(queue, number)
    queue.complete(*queue.dequeue(29))
    due = "update menzil.plan_part set check_at = now()"
    queue.conn.execute(due)
    queue.call("job_run", "plans")
    assert queue.one("select bool_and(open) from menzil.plan_part") is True
    assert queue.one("select min(check_at) > now() + interval '5 s' from menzil.plan_part") is True
    queue.fail(queue.lease(), "[PERMANENT] again")
    queue.conn.execute(due)
    queue.call("job_run", "plans")
    row = queue.one("select open, completed, dead, expired, cancelled from menzil.plan_part")
    assert row == (False, 29, 1, 0, 0)
    queue.conn.execute("delete from menzil.done")
    assert outcome(queue, number) == {"completed": 29, "dead": 1}


def test_completed_messages_that_were_removed_count_as_completed(queue: Queue) -> None:
    kill_all(queue, count=3)
    queue.call("set_setting", "archive_completed", "false")
    number = running(queue, "redrive", channel="work")
    finish(queue, number)
    queue.complete(*queue.dequeue(2))
    queue.call("job_run", "completed")
    assert queue.one("select count(*) from menzil.archive where status = 'completed'") == 0
    assert outcome(queue, number) == {"completed": 2, "waiting": 1}


def test_the_outcome_asks_for_the_messages_of_forty_parts_and_says_that_it_did_not_ask_for_all(
    queue: Queue,
) -> None:
    kill_all(queue, count=43)
    number = running(queue, "redrive", channel="work")
    while queue.call("plan_step", number, 1):
        pass
    assert outcome(queue, number) == {"waiting": 40, "unknown": 3}


def test_old_plans_are_forgotten_and_drafts_after_a_day(queue: Queue) -> None:
    kill_all(queue, count=2)
    old = running(queue, "redrive", channel="work")
    finish(queue, old)
    stopped, unused, busy = (draft(queue, "redrive", channel="work") for _ in range(3))
    queue.call("plan_stop", stopped)
    queue.call("plan_run", busy)
    queue.conn.execute(
        "update menzil.plan set created_at = created_at - interval '100 days',"
        " ended_at = ended_at - interval '100 days' where id = any (%s)",
        [[old, unused, busy]],
    )
    assert queue.call("job_run", "old_plans") == 2
    assert [row.id for row in queue.all("select id from menzil.plans order by id")] == [stopped, busy]
    assert queue.one("select count(*) from menzil.plan_part") == 0


def test_a_monitor_looks_and_does_nothing(queue: Queue, connect: Any) -> None:
    kill_all(queue, count=2)
    number = running(queue, "redrive", channel="work")
    conn = connect()
    conn.execute("set role menzil_monitor")
    monitor = Queue(conn)
    assert plan(monitor, number).counted == 2
    assert outcome(monitor, number) == {}
    assert monitor.rows("plan_targets", number)[0].channel == "work"
    for call in (f"plan_run({number})", f"plan_stop({number})", f"plan_step({number})", "plan_create('redrive', '{}')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            monitor.all(f"select menzil.{call}")


def test_two_plans_about_the_same_letters_share_them(queue: Queue) -> None:
    dead = kill_all(queue, count=10)
    one, two = draft(queue, "redrive", channel="work"), draft(queue, "redrive", channel="work")
    queue.call("plan_run", one)
    queue.call("plan_run", two)
    queue.call("plan_step", one, 6)
    queue.call("plan_step", two, 8)
    finish(queue, one)
    finish(queue, two)
    assert copies(queue) == dead
    assert plan(queue, one).done + plan(queue, two).done == 10
    assert ids(queue.dequeue(20)) == queue.one(
        "select array_agg(id order by id) from menzil.message where redrive_of is not null"
    )
