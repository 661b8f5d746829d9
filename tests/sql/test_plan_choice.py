"""What a plan takes, and what it leaves out: letters, ended messages, causes; exact counts and estimates."""

from __future__ import annotations

import pytest

from tests.sql.clock import created_at
from tests.sql.dying import die, letter
from tests.sql.planning import complete_all, copies, draft, failed, finish, kill_all, plan, running
from tests.sql.queue import Queue

# --- what a redrive takes ---------------------------------------------------------------------------------------------


def test_a_redrive_keeps_everything_that_was_sent(queue: Queue) -> None:
    old = die(
        queue,
        payload={"a": 1},
        priority=4,
        idempotency_key="i",
        ordering_key="k",
        headers={"X-A": "1"},
        metadata={"m": 1},
    )
    number = running(queue, "redrive", 10, channel="work")
    queue.call("plan_step", number)
    row = queue.one("select * from menzil.queue")
    assert (row.redrive_of, row.payload, row.priority, row.ordering_key) == (old, {"a": 1}, 4, "k")
    assert (row.headers, row.metadata, row.idempotency_key) == ({"X-A": "1"}, {"m": 1}, None)
    assert row.scheduled_at == plan(queue, number).last_due_at
    assert letter(queue, old).redriven_id == row.id
    assert queue.call("plan_of", row.id) == number
    assert queue.call("plan_of", old) is None


def test_a_redrive_takes_what_the_filter_says(queue: Queue) -> None:
    queue.call("channel_set", "other")
    work, other = kill_all(queue, "work", 6), kill_all(queue, "other", 2)
    for age, message in enumerate(work):
        queue.conn.execute(
            "update menzil.dead_letter set failed_at = '2026-01-01T00:00Z'::timestamptz + %s * interval '1 day'"
            " where original_message_id = %s",
            [age, message],
        )
    some = [letter(queue, message).id for message in (work[5], other[1])]
    number = running(queue, "redrive", channel="work", since="2026-01-02", until="2026-01-04")
    assert finish(queue, number) == 2
    assert copies(queue) == work[1:3]
    assert finish(queue, running(queue, "redrive", ids=some)) == 2
    assert sorted(copies(queue)) == sorted([*work[1:3], work[5], other[1]])
    assert finish(queue, running(queue, "redrive", all=True)) == 4
    assert failed(queue) == []


def test_letters_that_died_since_and_letters_that_die_again_are_not_part_of_the_plan(queue: Queue) -> None:
    kill_all(queue, count=3)
    number = running(queue, "redrive", channel="work")
    later = kill_all(queue, count=2)
    assert queue.call("plan_step", number, 2) == 2
    for message in queue.dequeue(2):
        queue.fail(message, "[PERMANENT] again")
    finish(queue, number)
    assert plan(queue, number).done == 3
    assert set(later) < set(failed(queue))
    assert len(failed(queue)) == 4


def test_letters_that_somebody_else_redrove_are_counted_as_skipped(queue: Queue) -> None:
    dead = kill_all(queue, count=30)
    queue.call("redrive_message", letter(queue, dead[0]).id)
    number = running(queue, "redrive", channel="work")
    for message in dead[5:8]:
        queue.call("redrive_message", letter(queue, message).id)
    finish(queue, number)
    row = plan(queue, number)
    assert (row.counted, row.done, row.skipped) == (29, 26, 3)


def test_ids_that_name_nothing_are_skipped_from_the_beginning(queue: Queue) -> None:
    dead = kill_all(queue, count=3)
    numbers = [letter(queue, message).id for message in dead]
    queue.call("redrive_message", numbers[0])
    number = running(queue, "redrive", ids=[*numbers, 987654321])
    assert (plan(queue, number).counted, plan(queue, number).skipped) == (2, 2)
    finish(queue, number)
    row = plan(queue, number)
    assert (row.done, row.skipped) == (2, 2)


@pytest.mark.parametrize("kind", ["redrive", "replay"])
def test_erased_messages_are_skipped(queue: Queue, kind: str) -> None:
    dead = kill_all(queue, count=20)
    number = running(queue, kind, channel="work")
    queue.call("message_erase", dead[4])
    finish(queue, number)
    row = plan(queue, number)
    assert (row.status, row.counted, row.done, row.skipped) == ("done", 20, 19, 1)
    assert dead[4] not in copies(queue, "redrive_of" if kind == "redrive" else "replay_of")


def test_channels_of_a_plan_take_turns(queue: Queue) -> None:
    for name in ("a", "b", "c"):
        queue.call("channel_set", name)
    kill_all(queue, "a", 10)
    kill_all(queue, "b", 2)
    kill_all(queue, "c", 1)
    number = running(queue, "redrive", all=True)
    assert [row.channel for row in queue.rows("plan_targets", number)] == ["a", "b", "c"]
    order = []
    for _ in range(4):
        queue.call("plan_step", number, 2)
        order.append({row.channel: row.done for row in queue.rows("plan_targets", number)})
    assert order[1] == {"a": 2, "b": 2, "c": 0}
    assert order[2]["c"] == 1
    finish(queue, number)
    assert plan(queue, number).done == 13


# --- what a replay takes ----------------------------------------------------------------------------------------------


def test_a_replay_takes_what_the_filter_says_in_order(queue: Queue) -> None:
    queue.call("channel_set", "other")
    sent = complete_all(queue, "work", 6)
    complete_all(queue, "other", 2)
    dead = die(queue)
    for day, message in enumerate(sent, 1):
        created_at(queue.conn, message, f"2026-01-{day:02}T00:00Z")
    live = queue.send()
    number = running(queue, "replay", channel="work", since="2026-01-02", until="2026-01-05")
    assert finish(queue, number) == 3
    assert copies(queue, "replay_of") == sent[1:4]
    assert finish(queue, running(queue, "replay", channel="work", status="failed")) == 1
    assert copies(queue, "replay_of")[-1] == dead
    some = running(queue, "replay", ids=[sent[0], dead, live, 987654321])
    assert finish(queue, some) == 2
    assert (plan(queue, some).counted, plan(queue, some).skipped) == (2, 2)
    assert live in queue.waiting()


def test_a_replay_does_not_take_what_it_made_nor_what_ended_since(queue: Queue) -> None:
    sent = complete_all(queue, "work", 4)
    live = queue.send()
    number = running(queue, "replay", channel="work")
    assert queue.call("plan_step", number, 2) == 2
    queue.complete(*queue.dequeue(10))
    assert queue.archived(live).status == "completed"
    finish(queue, number)
    assert queue.one("select array_agg(replay_of order by id) from menzil.message where replay_of is not null") == sent
    assert plan(queue, number).done == 4


def test_a_replay_finds_the_few_messages_of_its_channel_among_many(queue: Queue) -> None:
    queue.call("channel_set", "rare")
    sent = []
    for _ in range(3):
        sent.append(queue.send("rare"))
        queue.send_batch("work", 700)
        queue.complete(*queue.dequeue(1, ["rare"]))
    number = running(queue, "replay", channel="rare")
    # With a limit of 10 a step looks through 630 messages.
    assert [queue.call("plan_step", number, 10) for _ in range(5)].count(0) > 1
    finish(queue, number, 10)
    assert copies(queue, "replay_of") == sent


def test_a_replay_over_months_is_one_plan(queue: Queue) -> None:
    sent = complete_all(queue, "work", 3)
    for month, message in enumerate(sent, 9):
        created_at(queue.conn, message, f"2025-{month:02}-28T00:00Z")
    number = running(queue, "replay", channel="work", since="2025-01-01", until="2026-01-01")
    assert plan(queue, number).counted == 3
    finish(queue, number, 1)
    assert copies(queue, "replay_of") == sent


# --- causes -----------------------------------------------------------------------------------------------------------


def causes(queue: Queue) -> dict[str, str]:
    return {row.cause: row.cause_hash for row in queue.rows("dlq_causes")}


def test_a_redrive_of_one_cause_takes_its_letters_and_no_others(queue: Queue) -> None:
    queue.call("channel_set", "other")
    refused_ones = kill_all(queue, count=5, error="[PERMANENT] HTTP 422 no 17")
    kill_all(queue, count=3, error="[PERMANENT] HTTP 500 no")
    elsewhere = kill_all(queue, "other", 2, error="[PERMANENT] HTTP 422 no 18")
    digits = causes(queue)["HTTP 422 no #"]
    number = running(queue, "redrive", channel="work", cause_hash=digits)
    assert plan(queue, number).counted == 5
    (row,) = queue.rows("plan_targets", number)
    assert row.first_ids == [letter(queue, message).id for message in refused_ones[:3]]
    assert row.last_id == letter(queue, refused_ones[-1]).id
    assert [queue.call("plan_step", number, 2) for _ in range(3)] == [2, 2, 1]
    assert copies(queue) == refused_ones
    assert finish(queue, running(queue, "redrive", cause_hash=digits)) == 2
    assert copies(queue)[-2:] == elsewhere
    assert len(failed(queue)) == 3


def test_letters_of_a_cause_that_somebody_else_redrove_are_counted_as_skipped(queue: Queue) -> None:
    dead = kill_all(queue, count=20)
    number = running(queue, "redrive", channel="work", cause_hash=causes(queue)["no"])
    for message in dead[5:7]:
        queue.call("redrive_message", letter(queue, message).id)
    kill_all(queue, count=3)
    while plan(queue, number).status == "running":
        queue.call("plan_step", number, 4)
    row = plan(queue, number)
    assert (row.counted, row.done, row.skipped) == (20, 18, 2)


def test_a_cause_that_nobody_died_of_is_a_plan_about_nothing(queue: Queue) -> None:
    kill_all(queue, count=1)
    assert plan(queue, draft(queue, "redrive", cause_hash="0123456789ab")).counted == 0


# --- estimates --------------------------------------------------------------------------------------------------------


def test_a_count_that_takes_too_long_is_estimated_and_bounds_what_is_looked_at(queue: Queue) -> None:
    sent = complete_all(queue, "work", 5)
    for hour, message in enumerate(sent):
        created_at(queue.conn, message, f"2026-01-05T{hour:02}:00Z")
    channel = queue.one("select id from menzil.channels")
    row = queue.one(
        "select * from menzil._count_ended(%s, null, '2026-01-05+00', '2026-01-05 05:00+00', now(),"
        " now() - interval '1 s')",
        channel,
    )
    assert row.exact is False
    assert row.n >= 1
    assert row.low <= sent[0]
    assert row.high >= sent[-1]


def test_a_replay_whose_count_was_estimated_takes_every_message_and_no_other(queue: Queue) -> None:
    queue.call("channel_set", "other")
    complete_all(queue, "work", 3)
    sent = complete_all(queue, "work", 20)
    complete_all(queue, "other", 3)
    since = queue.one("select min(created_at) from menzil.message where id = any (%s)", sent)
    number = draft(queue, "replay", channel="work", since=since.isoformat())
    # As if it had taken too long: half of it is guessed, and it begins with the month.
    queue.conn.execute("update menzil.plan set counted = 9, counted_exactly = false")
    queue.conn.execute("update menzil.plan_channel set counted = 9, cursor_id = 0, end_id = 1000000")
    queue.call("plan_run", number)
    finish(queue, number, 7)
    assert copies(queue, "replay_of") == sent
    row = plan(queue, number)
    assert (row.status, row.counted, row.done) == ("done", 9, 20)


def test_a_redrive_of_very_many_is_counted_as_long_as_there_is_time(queue: Queue) -> None:
    kill_all(queue, count=3)
    channel = queue.one("select id from menzil.channels")
    late = "select * from menzil._count_letters(%s, null, '-infinity', 'infinity', 1000, now() - interval '1 s')"
    assert queue.one(late, channel) == (1, False)
    in_time = late.replace("- interval", "+ interval")
    assert queue.one(in_time, channel) == (3, True)
