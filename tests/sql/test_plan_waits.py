"""What a plan meets on its way: channels that are held, circuits, full queues. It waits, says so, and goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sql.clock import pass_time, until
from tests.sql.planning import complete_all, copies, draft, failed, finish, kill_all, outcome, plan, running
from tests.sql.queue import Queue

HOOK = {"url": "https://example.com/hook"}


@pytest.fixture
def hook(queue: Queue) -> str:
    queue.call("set_setting", "default_max_retries", "1000")
    queue.call("set_setting", "circuit_breaker_threshold", "3")
    queue.call("create_endpoint", "hook", "http", HOOK)
    return "hook"


def waits(queue: Queue, number: int) -> str:
    """Step the plan, which does nothing, and return what it says."""
    assert queue.call("plan_step", number) == 0
    row = plan(queue, number)
    assert row.status == "running"
    assert row.last_error.startswith("The plan waits. ")
    return row.last_error.removeprefix("The plan waits. ")


Act = Callable[[Queue], object]
HELD: dict[str, tuple[Act, str, Act]] = {
    "paused": (
        lambda queue: queue.call("channel_pause", "hook"),
        "Channel 'hook' is paused.",
        lambda queue: queue.call("channel_resume", "hook"),
    ),
    "disabled": (
        lambda queue: queue.call("disable_endpoint", "hook"),
        "Endpoint 'hook' is disabled.",
        lambda queue: queue.call("enable_endpoint", "hook"),
    ),
    "resting": (
        lambda queue: queue.conn.execute(
            "update menzil.gate set wait_until = '2099-01-01T00:00Z' where channel_id ="
            " (select id from menzil.channel where name = 'hook')"
        ),
        "Endpoint 'hook' asked for a rest until 2099-01-01 00:00:00 UTC.",
        lambda queue: queue.call("reset_circuit_breaker", "hook"),
    ),
}


@pytest.mark.parametrize("kind", ["redrive", "replay"])
@pytest.mark.parametrize("how", HELD)
def test_a_plan_waits_for_a_channel_that_is_held_and_goes_on(queue: Queue, hook: str, kind: str, how: str) -> None:
    hold, sentence, release = HELD[how]
    kill_all(queue, hook, 5)
    number = running(queue, kind, channel=hook)
    assert queue.call("plan_step", number, 2) == 2
    hold(queue)
    assert waits(queue, number) == sentence
    assert queue.rows("plan_targets", number)[0].waits_for == sentence
    queue.call("job_run", "plans")
    assert plan(queue, number).done == 2
    release(queue)
    queue.call("job_run", "plans")
    row = plan(queue, number)
    assert (row.status, row.done, row.last_error) == ("done", 5, None)


def open_circuit(queue: Queue) -> None:
    queue.send_batch("hook", 3)
    for message in queue.dequeue(3, ["hook"]):
        queue.fail(message)
    queue.call("maintain")
    assert queue.one("select circuit_state from menzil.endpoints") == "open"


def test_a_plan_waits_while_a_circuit_is_open_and_gives_it_one_message_to_probe_with(queue: Queue, hook: str) -> None:
    kill_all(queue, hook, 5)
    queue.call("reset_circuit_breaker", hook)
    open_circuit(queue)
    queue.call("channel_purge", hook)  # nothing else could be the probe
    number = running(queue, "redrive", channel=hook)
    assert waits(queue, number).startswith("The circuit of endpoint 'hook' is open until ")
    pass_time(queue.conn, 31)
    assert [queue.call("plan_step", number) for _ in range(3)] == [1, 0, 0]
    assert waits(queue, number) == "The circuit of endpoint 'hook' is open, and one message probes it."
    probe = queue.lease([hook])
    assert waits(queue, number) == "The circuit of endpoint 'hook' is open, and one message probes it."
    queue.fail(probe)
    queue.call("maintain")
    assert "open until" in waits(queue, number)
    pass_time(queue.conn, 31)
    assert [queue.call("plan_step", number) for _ in range(2)] == [1, 0]
    queue.complete(queue.lease([hook]))
    queue.call("maintain")
    assert finish(queue, number) == 3
    assert (plan(queue, number).done, plan(queue, number).last_error) == (5, None)


def test_a_channel_that_is_held_keeps_no_other_channel_of_the_plan_waiting(queue: Queue) -> None:
    for name in ("a", "b", "c"):
        queue.call("channel_set", name)
        kill_all(queue, name, 3)
    queue.call("channel_pause", "b")
    number = running(queue, "redrive", all=True)
    queue.call("job_run", "plans")
    row = plan(queue, number)
    assert (row.status, row.done, row.last_error) == ("running", 6, "The plan waits. Channel 'b' is paused.")
    queue.call("channel_resume", "b")
    queue.call("job_run", "plans")
    assert (plan(queue, number).status, plan(queue, number).done) == ("done", 9)


def test_a_plan_that_waits_for_many_channels_names_three(queue: Queue) -> None:
    for name in "abcde":
        queue.call("channel_set", name)
        kill_all(queue, name, 1)
        queue.call("channel_pause", name)
    number = running(queue, "redrive", all=True)
    assert waits(queue, number).endswith("Channel 'c' is paused. 2 more channels wait.")


@pytest.mark.parametrize("how", ["channel_release", "drop_endpoint"])
def test_a_channel_that_goes_away_leaves_the_rest_out_and_says_so(queue: Queue, hook: str, how: str) -> None:
    kill_all(queue, hook, 5)
    number = running(queue, "redrive", channel=hook)
    queue.call("plan_step", number, 2)
    if how == "drop_endpoint":
        queue.call("channel_purge", hook)
    queue.call(how, hook)
    queue.call("job_run", "plans")
    row = plan(queue, number)
    assert (row.status, row.done, row.skipped) == ("done", 2, 3)
    assert row.last_error.endswith("3 of its messages were left out.")
    assert len(failed(queue)) == 3


# --- room -------------------------------------------------------------------------------------------------------------


def test_a_plan_fills_a_queue_to_nine_tenths_then_waits_and_goes_on_when_there_is_room(queue: Queue) -> None:
    complete_all(queue, "work", 300)
    queue.call("set_setting", "max_queue_size", "100")
    queue.conn.execute("select setval('menzil.counted_at', 0)")
    number = running(queue, "replay", channel="work")
    until(lambda: queue.call("plan_step", number) == 0)
    done = plan(queue, number).done
    assert 45 < done <= 90
    assert (
        waits(queue, number) == "The queue is full: a plan uses up to nine tenths of its max_queue_size, 90 messages."
    )
    queue.send_batch("work", 5)  # a sender still has room
    for _ in range(20):
        queue.complete(*queue.dequeue(50))
        queue.call("job_run", "plans")
    until(
        lambda: (
            queue.complete(*queue.dequeue(50))
            or (queue.call("job_run", "plans"), plan(queue, number).status)[1] == "done"
        )
    )
    row = plan(queue, number)
    assert (row.done, row.last_error) == (300, None)


def test_a_plan_keeps_to_the_size_of_a_channel(queue: Queue) -> None:
    queue.call("channel_set", "other")
    kill_all(queue, "work", 30)
    kill_all(queue, "other", 5)
    queue.call("channel_set", "work", p_max_size=20)
    number = running(queue, "redrive", all=True)
    queue.call("job_run", "plans")
    assert queue.one("select count(*) from menzil.queue where channel = 'work'") <= 18
    queue.call("job_run", "plans")
    row = plan(queue, number)
    assert (
        row.last_error
        == "The plan waits. Channel 'work' is full: a plan uses up to nine tenths of its max_size, 18 messages."
    )
    assert queue.one("select count(*) from menzil.queue where channel = 'other'") == 5
    queue.send("work")
    while queue.complete(*queue.dequeue(50)):
        queue.call("job_run", "plans")
    assert (plan(queue, number).status, plan(queue, number).done) == ("done", 35)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_small_channel_is_not_too_small_for_a_plan(queue: Queue, size: int) -> None:
    kill_all(queue, "work", 7)
    queue.call("channel_set", "work", p_max_size=size)
    number = running(queue, "redrive", channel="work")
    queue.call("job_run", "plans")
    while queue.complete(*queue.dequeue(50)):
        queue.call("job_run", "plans")
    assert (plan(queue, number).status, plan(queue, number).done) == ("done", 7)


# --- ordering keys ----------------------------------------------------------------------------------------------------


def blocked(queue: Queue, behind: int = 2) -> list[int]:
    """A key whose first message died and holds up the others."""
    queue.call("channel_set", "work", p_on_dead="block")
    sent = [queue.send(ordering_key="k") for _ in range(behind + 1)]
    assert queue.fail(queue.lease(), "[PERMANENT] no") == "dead"
    assert queue.dequeue() == []
    return sent


@pytest.mark.parametrize("rate", [None, 100])
def test_a_blocked_ordering_key_passes_to_the_new_message_which_goes_first(queue: Queue, rate: float | None) -> None:
    sent = blocked(queue)
    number = running(queue, "redrive", rate, channel="work")
    assert finish(queue, number) == 1
    first = until(lambda: queue.dequeue(5))
    assert [message.ordering_key for message in first] == ["k"]
    assert queue.archived(sent[0]).status == "failed"
    assert queue.one("select redrive_of from menzil.message where id = %s", first[0].id) == sent[0]
    assert queue.dequeue() == []
    queue.complete(*first)
    for expected in sent[1:]:
        message = until(lambda: queue.dequeue(5))[0]
        assert message.id == expected
        queue.complete(message)


def test_a_key_stays_with_its_new_message_while_that_waits_for_its_time(queue: Queue) -> None:
    sent = blocked(queue)
    number = running(queue, "redrive", 0.01, channel="work")
    finish(queue, number)
    queue.call("maintain")
    assert queue.dequeue(5) == []
    pass_time(queue.conn, 101)
    message = until(lambda: queue.dequeue(5))[0]
    assert queue.one("select redrive_of from menzil.message where id = %s", message.id) == sent[0]


def test_rebuild_leaves_a_key_with_a_new_message_that_waits_for_its_time(queue: Queue) -> None:
    sent = blocked(queue)
    finish(queue, running(queue, "redrive", 0.01, channel="work"))
    queue.call("rebuild")
    assert queue.dequeue(5) == []
    pass_time(queue.conn, 101)
    message = until(lambda: queue.dequeue(5))[0]
    assert queue.one("select redrive_of from menzil.message where id = %s", message.id) == sent[0]
    queue.complete(message)
    assert until(lambda: queue.dequeue(5))[0].id == sent[1]


def test_messages_of_one_key_are_replayed_in_their_order(queue: Queue) -> None:
    for number in range(5):
        queue.send(payload={"n": number}, ordering_key="k")
    for _ in range(5):
        queue.complete(until(lambda: queue.dequeue(1))[0])
    plan_id = running(queue, "replay", 200, channel="work")
    finish(queue, plan_id, 2)
    served = []
    for _ in range(5):
        message = until(lambda: queue.dequeue(5))[0]
        served.append(message.payload["n"])
        queue.complete(message)
    assert served == [0, 1, 2, 3, 4]
    assert outcome(queue, plan_id) == {"completed": 5}


def test_a_plan_to_a_paused_channel_may_be_drafted(queue: Queue) -> None:
    kill_all(queue, count=1)
    queue.call("channel_pause", "work")
    assert plan(queue, draft(queue, "redrive", channel="work")).counted == 1
    assert copies(queue) == []
