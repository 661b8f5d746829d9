"""Plans: a draft that is counted, runs in steps, and can be paused."""

from __future__ import annotations

import pytest
from psycopg.types.json import Jsonb

from tests.sql.dying import events, letter
from tests.sql.planning import copies, draft, failed, finish, kill_all, plan, running
from tests.sql.queue import Queue
from tests.sql.refusing import refused

# --- drafts -----------------------------------------------------------------------------------------------------------


def test_a_draft_is_counted_and_moves_nothing(queue: Queue) -> None:
    dead = kill_all(queue, count=3)
    queue.conn.execute("set menzil.actor = 'ada'; set menzil.via = 'console'")
    number = queue.call("plan_create", "redrive", Jsonb({"channel": "work"}), 5, "after the outage")
    row = plan(queue, number)
    assert (row.kind, row.filter, row.rate, row.note) == ("redrive", {"channel": "work"}, 5, "after the outage")
    assert (row.status, row.counted, row.counted_exactly) == ("draft", 3, True)
    assert (row.done, row.skipped, row.taken_back) == (0, 0, 0)
    assert (row.started_at, row.ended_at, row.last_due_at, row.last_error) == (None, None, None, None)
    assert (row.actor, row.via) == (f"ada (as {queue.one('select session_user')})", "console")
    assert failed(queue) == dead
    assert queue.waiting() == []
    (event,) = events(queue, "plan.created")
    assert (event.entity_type, event.entity_id) == ("plan", str(number))
    assert event.new_value["counted"] == 3


def test_somebody_who_does_not_say_who_acts_is_the_role_that_logged_in(queue: Queue) -> None:
    queue.conn.execute("set menzil.actor = ''; set menzil.via = 'carrier pigeon'")
    row = plan(queue, draft(queue, "redrive", all=True))
    assert (row.actor, row.via) == (queue.one("select session_user::text"), "sql")


@pytest.mark.parametrize("call", ["plan_run", "plan_pause", "plan_step", "plan_stop", "plan_outcome", "plan_targets"])
def test_a_plan_that_is_not_there_is_refused(queue: Queue, call: str) -> None:
    assert refused(queue, "42704", call, 987654321) == "There is no plan 987654321."
    assert refused(queue, "22004", call, None)


def test_a_draft_is_not_stepped_and_not_paused(queue: Queue) -> None:
    number = draft(queue, "redrive", all=True)
    assert refused(queue, "55000", "plan_step", number) == f"Plan {number} is a draft."
    assert "draft" in refused(queue, "55000", "plan_pause", number)
    assert queue.call("plan_stop", number) == 0
    assert plan(queue, number).status == "stopped"


def test_a_draft_is_good_for_ten_minutes(queue: Queue) -> None:
    kill_all(queue, count=1)
    number = draft(queue, "redrive", channel="work")
    queue.conn.execute("update menzil.plan set created_at = created_at - interval '9 min'")
    young = draft(queue, "redrive", channel="work")
    queue.call("plan_run", number)
    queue.conn.execute("update menzil.plan set created_at = created_at - interval '11 min' where id = %s", [young])
    said = refused(queue, "55000", "plan_run", young)
    assert said == f"Plan {young} was counted 11 minutes ago, and a draft is good for 10 minutes."
    assert plan(queue, young).status == "draft"


@pytest.mark.parametrize(("gone", "runs"), [(2, True), (3, False)])
def test_a_draft_whose_count_has_moved_by_more_than_a_tenth_is_made_again(queue: Queue, gone: int, runs: bool) -> None:
    dead = kill_all(queue, count=20)
    number = draft(queue, "redrive", channel="work")
    for message in dead[:gone]:
        queue.call("redrive_message", letter(queue, message).id)
    if runs:
        queue.call("plan_run", number)
        return
    said = refused(queue, "55000", "plan_run", number)
    assert said == f"Plan {number} was counted as 20, and now there are 17: more than a tenth of it has changed."
    queue.call("plan_run", draft(queue, "redrive", channel="work"))


def test_a_plan_about_nothing_is_done_at_its_first_step(queue: Queue) -> None:
    number = running(queue, "replay", channel="work")
    assert queue.call("plan_step", number) == 0
    assert plan(queue, number).status == "done"


# --- running ----------------------------------------------------------------------------------------------------------


def test_a_plan_runs_in_steps_and_is_done(queue: Queue) -> None:
    dead = kill_all(queue, count=5)
    number = running(queue, "redrive", channel="work")
    assert [queue.call("plan_step", number, 2) for _ in range(4)] == [2, 2, 1, 0]
    row = plan(queue, number)
    assert (row.status, row.done, row.skipped, row.last_error) == ("done", 5, 0, None)
    assert row.created_at <= row.started_at <= row.last_due_at <= row.ended_at
    assert copies(queue) == dead
    assert failed(queue) == []
    assert [
        event.event_type for event in queue.all("select * from menzil.event_log where entity_id = %s", str(number))
    ] == [
        "plan.created",
        "plan.started",
        "plan.done",
    ]


def test_a_plan_that_runs_may_be_run_again_and_an_ended_one_may_not(queue: Queue) -> None:
    kill_all(queue, count=2)
    number = running(queue, "redrive", channel="work")
    queue.call("plan_run", number)
    assert len(events(queue, "plan.started")) == 1
    finish(queue, number)
    assert queue.call("plan_step", number) == 0
    for call in ("plan_run", "plan_pause"):
        assert refused(queue, "55000", call, number) == f"Plan {number} has ended, its status is done."


def test_a_paused_plan_makes_nothing_until_it_runs_again(queue: Queue) -> None:
    kill_all(queue, count=4)
    number = running(queue, "redrive", channel="work")
    queue.call("plan_step", number, 1)
    queue.call("plan_pause", number)
    queue.call("plan_pause", number)
    assert queue.call("plan_step", number) == 0
    queue.call("job_run", "plans")
    assert (plan(queue, number).status, plan(queue, number).done) == ("paused", 1)
    # A paused plan may be old: it was looked at when it was a draft.
    queue.conn.execute("update menzil.plan set created_at = created_at - interval '1 day', started_at = now()")
    queue.conn.execute("update menzil.dead_letter set failed_at = failed_at - interval '2 days'")
    queue.call("plan_run", number)
    finish(queue, number)
    assert plan(queue, number).done == 4
    assert [len(events(queue, f"plan.{act}")) for act in ("paused", "resumed", "done")] == [1, 1, 1]


def test_the_job_runs_a_plan_to_its_end(queue: Queue) -> None:
    dead = kill_all(queue, count=30)
    number = running(queue, "redrive", channel="work")
    assert queue.call("job_run", "plans") == 30
    assert plan(queue, number).status == "done"
    assert copies(queue) == dead
    assert queue.one("select last_error from menzil.jobs where name = 'plans'") is None


def test_a_plan_that_fails_says_so_and_keeps_no_other_waiting(queue: Queue) -> None:
    queue.call("channel_set", "other")
    kill_all(queue, "work", 3)
    kill_all(queue, "other", 3)
    bad, good = running(queue, "redrive", channel="work"), running(queue, "redrive", channel="other")
    queue.conn.execute("update menzil.plan set rate = 'NaN' where id = %s", [bad])
    queue.call("job_run", "plans")
    assert plan(queue, good).status == "done"
    assert plan(queue, bad).status == "running"
    assert plan(queue, bad).last_error.startswith("22")
    queue.conn.execute("update menzil.plan set rate = null where id = %s", [bad])
    queue.call("job_run", "plans")
    assert (plan(queue, bad).status, plan(queue, bad).last_error) == ("done", None)


def test_the_limit_of_a_step_is_checked(queue: Queue) -> None:
    number = running(queue, "redrive", all=True)
    for limit in (0, -1, 10_001):
        refused(queue, "22023", "plan_step", number, limit)
    refused(queue, "22004", "plan_step", number, None)


def test_a_copy_of_a_database_runs_no_plan(queue: Queue) -> None:
    kill_all(queue, count=3)
    ready, begun = draft(queue, "redrive", channel="work"), running(queue, "redrive", channel="work")
    queue.conn.execute("update menzil.home set database_oid = 1, database_name = 'shop'")
    try:
        refused(queue, "MZ003", "plan_run", ready)
        refused(queue, "MZ003", "plan_step", begun)
        assert queue.call("job_run", "plans") == 0
        assert len(failed(queue)) == 3
        queue.call("plan_pause", begun)
        assert queue.call("plan_stop", begun) == 0
    finally:
        queue.call("adopt")
