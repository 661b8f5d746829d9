"""Stop: nothing more is made. Take back: what was made and not leased is cancelled, as if it had not been made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.clock import pass_time, until
from tests.sql.dying import events, letter
from tests.sql.planning import complete_all, copies, draft, failed, finish, kill_all, outcome, plan, running
from tests.sql.queue import Queue, ids
from tests.sql.refusing import refused


def test_a_stopped_plan_makes_nothing_more_and_leaves_what_it_made(queue: Queue) -> None:
    kill_all(queue, count=10)
    number = running(queue, "redrive", channel="work")
    queue.call("plan_step", number, 4)
    assert queue.call("plan_stop", number) == 0
    assert queue.call("plan_step", number) == 0
    queue.call("job_run", "plans")
    row = plan(queue, number)
    assert (row.status, row.done, row.taken_back) == ("stopped", 4, 0)
    assert row.ended_at >= row.started_at
    assert len(queue.dequeue(10)) == 4
    assert len(failed(queue)) == 6
    assert refused(queue, "55000", "plan_run", number) == f"Plan {number} has ended, its status is stopped."
    queue.call("plan_stop", number)
    assert len(events(queue, "plan.stopped")) == 1


@pytest.mark.parametrize("rate", [None, 1, 1000])
@pytest.mark.parametrize("kind", ["redrive", "replay"])
def test_taking_back_leaves_only_what_was_leased(queue: Queue, kind: str, rate: float | None) -> None:
    dead = kill_all(queue, count=20)
    number = running(queue, kind, rate, channel="work")
    queue.call("plan_step", number, 12)
    pass_time(queue.conn, 6)
    leased = queue.dequeue(5)
    queue.complete(*leased[:2])
    assert len(leased) == 5
    assert queue.call("plan_stop", number, True) == 7
    row = plan(queue, number)
    assert (row.status, row.done, row.taken_back) == ("stopped", 12, 7)
    assert outcome(queue, number) == {"taken_back": 7, "in_flight": 3, "completed": 2}
    assert queue.waiting() == []
    assert queue.dequeue(20) == []
    queue.complete(*leased[2:])
    assert outcome(queue, number) == {"taken_back": 7, "completed": 5}
    assert queue.one("select count(*) from menzil.archive where status = 'cancelled'") == 7
    if kind == "redrive":
        assert failed(queue) == dead[5:]
        assert queue.one("select count(*) from menzil.dead_letter where redriven_id is not null") == 5
        assert finish(queue, running(queue, "redrive", channel="work")) == 15


def test_a_plan_that_is_done_can_still_be_taken_back(queue: Queue) -> None:
    dead = kill_all(queue, count=3)
    number = running(queue, "redrive", channel="work")
    finish(queue, number)
    assert plan(queue, number).status == "done"
    ended = plan(queue, number).ended_at
    assert queue.call("plan_stop", number, True) == 3
    row = plan(queue, number)
    assert (row.status, row.ended_at) == ("stopped", ended)
    assert failed(queue) == dead
    assert queue.call("plan_stop", number, True) == 0


def test_a_message_that_came_back_from_a_try_is_taken_back_too(queue: Queue) -> None:
    kill_all(queue, count=2)
    number = running(queue, "redrive", channel="work")
    finish(queue, number)
    queue.fail(queue.lease())
    assert queue.call("plan_stop", number, True) == 2
    assert outcome(queue, number) == {"taken_back": 2}


def test_what_is_taken_back_beyond_five_thousand_is_left_to_the_job(queue: Queue) -> None:
    complete_all(queue, "work", 6000)
    queue.send_batch("work", 6000)
    queue.complete(*queue.dequeue(6000))
    number = running(queue, "replay", 100_000, channel="work")
    finish(queue, number, 5000)
    pass_time(queue.conn, -3600)
    assert queue.call("plan_stop", number, True) == 5000
    assert plan(queue, number).status == "stopped"
    queue.call("job_run", "plans")
    until(lambda: queue.call("job_run", "plans") == 0)
    assert plan(queue, number).taken_back == 12_000
    assert queue.waiting() == []
    assert outcome(queue, number) == {"taken_back": 12_000}
    assert queue.one("select bool_or(takes_back) from menzil.plan") is False


@pytest.mark.parametrize("rate", [None, 0.01, 1000])
def test_a_blocked_ordering_key_goes_back_to_its_dead_letter(queue: Queue, rate: float | None) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    sent = [queue.send(ordering_key="k") for _ in range(3)]
    queue.fail(queue.lease(), "[PERMANENT] no")
    number = running(queue, "redrive", rate, channel="work")
    finish(queue, number)
    if rate == 1000:
        pass_time(queue.conn, 1)
        queue.call("maintain")  # it stands in its lane by now
    assert queue.call("plan_stop", number, True) == 1
    dead = letter(queue, sent[0])
    assert (dead.status, dead.blocks_key, dead.redriven_id, dead.redriven_at) == ("failed", True, None, None)
    queue.call("maintain")
    assert queue.dequeue(5) == []
    queue.call("redrive_message", dead.id)
    first = until(lambda: queue.dequeue(5))[0]
    assert queue.one("select redrive_of from menzil.message where id = %s", first.id) == sent[0]
    queue.complete(first)
    assert until(lambda: queue.dequeue(5))[0].id == sent[1]


def test_a_key_that_nothing_blocks_goes_on_after_a_redrive_is_taken_back(queue: Queue) -> None:
    sent = [queue.send(ordering_key="k") for _ in range(2)]
    queue.fail(queue.lease(), "[PERMANENT] no")
    number = running(queue, "redrive", 0.01, channel="work")
    finish(queue, number)
    queue.call("plan_stop", number, True)
    assert letter(queue, sent[0]).blocks_key is False
    message = until(lambda: queue.dequeue(5))[0]
    assert message.id == sent[1]
    queue.complete(message)
    assert queue.one("select count(*) from menzil.key_queue") == 0


def test_room_that_a_plan_used_is_free_again_when_it_is_taken_back(queue: Queue) -> None:
    kill_all(queue, count=8)
    queue.call("channel_set", "work", p_max_size=8)
    number = running(queue, "redrive", channel="work")
    finish(queue, number)
    queue.call("plan_stop", number, True)
    assert len(queue.send_batch("work", 8)) == 8


# --- cancel -----------------------------------------------------------------------------------------------------------


def places(queue: Queue) -> dict[str, list[int]]:
    """Messages that wait wherever a message can wait, one in flight, and one that has ended."""
    queue.call("channel_set", "other")
    ended = complete_all(queue, "work", 1)
    runs = queue.send_batch("work", 5)
    flying = ids(queue.dequeue(2))
    later = [queue.send(scheduled_at="2099-01-01") for _ in range(2)]
    keyed = [queue.send(ordering_key="k", priority=3) for _ in range(3)]
    queue.call("maintain")
    lines = queue.send_batch("work", 4)
    return {
        "ended": ended,
        "flying": flying,
        "waiting": sorted([*(set(runs) - set(flying)), *later, *keyed, *lines]),
        "other": queue.send_batch("other", 2),
    }


def test_a_cancel_ends_what_waits_wherever_it_waits(queue: Queue) -> None:
    there = places(queue)
    number = running(queue, "cancel", channel="work")
    assert plan(queue, number).counted == len(there["waiting"]) == 12
    since = queue.send()
    assert [queue.call("plan_step", number, 5) for _ in range(4)] == [5, 5, 2, 0]
    row = plan(queue, number)
    assert (row.status, row.done, row.skipped) == ("done", 12, 0)
    assert outcome(queue, number) == {"cancelled": 12}
    assert sorted(queue.waiting()) == sorted([since, *there["other"]])
    rows = queue.all("select id from menzil.archive where status = 'cancelled' order by id")
    assert [row.id for row in rows] == there["waiting"]
    assert {message.id for message in queue.dequeue(20)} == {since, *there["other"]}
    assert queue.call("plan_of", there["waiting"][0]) is None


def test_a_cancel_runs_however_much_has_been_sent_or_delivered_since_it_was_drafted(queue: Queue) -> None:
    sent = queue.send_batch("work", 4)
    number = draft(queue, "cancel", channel="work")
    leased = queue.dequeue(2)
    later = queue.send_batch("work", 20)
    queue.call("plan_run", number)
    assert finish(queue, number) == 2
    assert queue.waiting() == later
    assert ids(leased) == sent[:2]


def test_a_cancel_of_everything_reaches_every_channel(queue: Queue) -> None:
    there = places(queue)
    number = running(queue, "cancel", all=True)
    assert plan(queue, number).counted == len(there["waiting"]) + 2
    queue.call("job_run", "plans")
    assert (plan(queue, number).status, queue.waiting()) == ("done", [])


def test_a_cancel_takes_what_the_filter_says(queue: Queue) -> None:
    sent = queue.send_batch("work", 6)
    old = queue.send_batch("work", 3)
    queue.conn.execute("update menzil.message set created_at = created_at - interval '1 h' where id = any (%s)", [old])
    queue.conn.execute("update menzil.line set flags = flags | 1")
    before = queue.one("select (now() - interval '30 min')::text")
    number = running(queue, "cancel", channel="work", until=before)
    assert plan(queue, number).counted == 3
    finish(queue, number)
    assert queue.waiting() == sent
    number = running(queue, "cancel", ids=[*sent[:2], old[0], 987654321])
    assert (plan(queue, number).counted, plan(queue, number).skipped) == (2, 2)
    finish(queue, number)
    assert queue.waiting() == sent[2:]
    number = running(queue, "cancel", channel="work", since=before)
    finish(queue, number)
    assert queue.waiting() == []


def test_what_was_leased_since_is_skipped(queue: Queue) -> None:
    queue.send_batch("work", 30)
    number = running(queue, "cancel", channel="work")
    queue.call("plan_step", number, 1)
    leased = queue.dequeue(2)
    queue.complete(leased[0])
    finish(queue, number)
    row = plan(queue, number)
    assert (row.done, row.skipped) == (28, 2)
    assert queue.complete(leased[1]) == {leased[1].id: "settled"}


@pytest.mark.parametrize("how", ["channel_pause", "channel_release"])
def test_a_cancel_does_not_wait_for_a_channel_that_is_held(queue: Queue, how: str) -> None:
    queue.send_batch("work", 3)
    number = running(queue, "cancel", channel="work")
    queue.call(how, "work")
    finish(queue, number)
    assert (plan(queue, number).done, queue.waiting()) == (3, [])


def test_a_cancel_can_be_stopped_and_not_taken_back(queue: Queue) -> None:
    queue.send_batch("work", 5)
    number = running(queue, "cancel", channel="work")
    queue.call("plan_step", number, 2)
    said = refused(queue, "22023", "plan_stop", number, True)
    assert said == "A cancel cannot be taken back: what it ended has ended."
    assert plan(queue, number).status == "running"
    assert queue.call("plan_stop", number) == 0
    assert (plan(queue, number).done, len(queue.waiting())) == (2, 3)
    assert queue.one("select count(*) from menzil.plan_todo") == 0
    refused(queue, "22004", "plan_stop", number, None)


def test_a_thousand_messages_that_stand_in_one_run_are_cancelled_together(queue: Queue) -> None:
    queue.send_batch("work", 3000)
    first = queue.dequeue(1)
    number = running(queue, "cancel", channel="work")
    assert plan(queue, number).counted == 2999
    finish(queue, number)
    assert plan(queue, number).done == 2999
    assert queue.dequeue(10) == []
    queue.complete(*first)
    queue.call("maintain")
    assert queue.one("select count(*) from menzil.withdrawn") == 0
    assert queue.one("select (select count(*) from menzil.run) + (select count(*) from menzil.line)") == 0


def test_messages_of_one_key_that_are_cancelled_let_the_others_go_on(queue: Queue) -> None:
    sent = [queue.send(ordering_key="k") for _ in range(4)]
    queue.call("maintain")
    finish(queue, running(queue, "cancel", ids=sent[:3]))
    assert until(lambda: queue.dequeue(5))[0].id == sent[3]


def test_a_draft_counts_what_waits_and_not_what_is_in_flight(queue: Queue) -> None:
    queue.send_batch("work", 10)
    queue.dequeue(4)
    assert plan(queue, draft(queue, "cancel", channel="work")).counted == 6
    queue.call("channel_set", "empty")
    assert plan(queue, draft(queue, "cancel", channel="empty")).counted == 0
    assert copies(queue) == []


def test_events_of_a_plan_name_who_acted(queue: Queue) -> None:
    kill_all(queue, count=2)
    queue.conn.execute("set menzil.actor = 'ada'; set menzil.via = 'cli'")
    number = running(queue, "redrive", 1, channel="work")
    queue.call("plan_step", number)
    queue.call("plan_pause", number)
    queue.call("plan_run", number)
    queue.call("plan_stop", number, True)
    rows: list[Any] = queue.all(
        "select event_type, actor, via from menzil.event_log where entity_type = 'plan' order by id"
    )
    assert [row.event_type for row in rows] == [
        f"plan.{act}" for act in ("created", "started", "paused", "resumed", "stopped")
    ]
    assert {(row.actor.split()[0], row.via) for row in rows} == {("ada", "cli")}
