"""Redrive: dead letters become new messages, once, in the order they were sent in."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from tests.sql.background import waiting
from tests.sql.clock import created_at
from tests.sql.dying import die, events, letter
from tests.sql.queue import Queue, ids
from tests.sql.refusing import CLOSED, close, refused


def test_a_redriven_message_starts_afresh_with_everything_that_was_sent(queue: Queue) -> None:
    correlation = uuid.uuid4()
    queue.call("set_setting", "default_max_retries", "1")
    old = queue.send(
        payload={"a": 1},
        priority=4,
        idempotency_key="i",
        correlation_id=correlation,
        ordering_key="k",
        headers={"X-A": "1"},
        metadata={"m": 1},
        expires_at="2099-01-01+00",
        scheduled_at="2001-01-01+00",
    )
    queue.defer(queue.lease(), state=b"half")
    queue.fail(queue.lease(), retry_after="0")
    assert queue.fail(queue.lease()) == "dead"
    dead = letter(queue, old)
    assert (dead.retry_count, dead.state) == (1, b"half")
    new = queue.call("redrive_message", dead.id)
    assert new > old
    row = queue.one("select * from menzil.queue")
    assert (row.id, row.redrive_of, row.replay_of, row.status, row.channel) == (new, old, None, "pending", "work")
    assert (row.payload, row.content, row.priority, row.ordering_key) == ({"a": 1}, None, 4, "k")
    assert (row.correlation_id, row.headers, row.metadata) == (correlation, {"X-A": "1"}, {"m": 1})
    assert (row.retry_count, row.num_attempts, row.last_error, row.state) == (0, 0, None, None)
    assert (row.expires_at, row.idempotency_key, row.scheduled_at) == (None, None, None)
    message = queue.lease()
    assert (message.id, message.num_attempts) == (new, 1)
    assert queue.complete(message) == {new: "settled"}
    assert queue.archived(new).redrive_of == old
    assert queue.archived(old).status == "failed"


def test_a_binary_body_comes_back_as_it_was(queue: Queue) -> None:
    queue.call("message_create", "work", b"\x00\xff")
    queue.fail(queue.lease(), "[PERMANENT] no")
    queue.call("redrive_all")
    assert queue.lease().content == b"\x00\xff"


def test_a_redriven_dead_letter_stays_as_its_own_audit_trail(queue: Queue) -> None:
    old = die(queue)
    before = letter(queue, old)
    new = queue.call("redrive_message", before.id)
    after = letter(queue, old)
    assert (after.id, after.status, after.redriven_id) == (before.id, "redriven", new)
    assert before.failed_at <= after.redriven_at <= queue.now()
    assert after.last_error == before.last_error


def test_a_second_redrive_is_refused_and_names_the_first(queue: Queue) -> None:
    dead = letter(queue, die(queue)).id
    new = queue.call("redrive_message", dead)
    said = refused(queue, "55000", "redrive_message", dead)
    assert said == f"Dead letter {dead} was redriven already, as message {new}."
    assert (queue.call("redrive_endpoint", "work"), queue.call("redrive_all")) == (0, 0)
    assert queue.waiting() == [new]


def test_a_message_that_dies_again_has_a_dead_letter_of_its_own(queue: Queue) -> None:
    first = die(queue)
    second = queue.call("redrive_message", letter(queue, first).id)
    queue.fail(queue.lease(), "[PERMANENT] again")
    assert letter(queue, second).redrive_of == first
    third = queue.call("redrive_message", letter(queue, second).id)
    assert queue.one("select redrive_of from menzil.queue where id = %s", third) == second


def test_an_endpoint_is_redriven_in_the_order_its_messages_were_sent_in(queue: Queue) -> None:
    queue.call("channel_set", "other")
    die(queue, "other")
    sent = queue.send_batch("work", 5)
    taken = {message.id: message for message in queue.dequeue(5)}
    for message in (sent[3], sent[0], sent[4], sent[1], sent[2]):
        queue.fail(taken[message], "[PERMANENT] no")
    assert queue.call("redrive_endpoint", "work") == 5
    redriven = dict(queue.all("select id, redrive_of from menzil.queue where channel = 'work'"))
    assert [redriven[message.id] for message in queue.dequeue(10)] == sent
    assert queue.one("select count(*) from menzil.dlq where status = 'failed'") == 1


def test_everything_is_redriven_in_the_order_it_was_sent_in(queue: Queue) -> None:
    queue.call("channel_set", "other")
    dead = [die(queue, ["work", "other"][n % 2]) for n in range(4)]
    assert queue.call("redrive_all") == 4
    rows = queue.all("select redrive_of from menzil.queue order by id")
    assert [row.redrive_of for row in rows] == dead
    assert len(queue.dequeue(10)) == 4


def test_priorities_and_turns_hold_for_what_is_redriven(queue: Queue) -> None:
    low, high = die(queue, priority=1), die(queue, priority=9)
    queue.call("redrive_all")
    redriven = dict(queue.all("select id, redrive_of from menzil.queue"))
    assert [redriven[message.id] for message in queue.dequeue(2)] == [high, low]


@pytest.mark.parametrize("count", [1, 150])
def test_what_is_redriven_while_its_channel_is_asleep_is_delivered(queue: Queue, count: int) -> None:
    queue.send_batch("work", count)
    for message in queue.dequeue(count):
        queue.fail(message, "[PERMANENT] no")
    while queue.one("select count(*) from menzil.lane where next_at is not null"):
        assert queue.dequeue(10) == []
    assert queue.call("redrive_endpoint", "work") == count
    assert len(queue.dequeue(count + 1)) == count


def test_a_cause_and_a_limit_choose_what_is_redriven(queue: Queue) -> None:
    gone = [die(queue, error=f"[PERMANENT] Order {n} is unknown.") for n in range(3)]
    die(queue, error="[PERMANENT] No disk.")
    cause = queue.rows("dlq_causes")[0].cause
    assert queue.call("redrive_endpoint", "work", cause, 2) == 2
    assert queue.call("redrive_endpoint", "work", p_cause=cause) == 1
    assert queue.call("redrive_endpoint", "work", p_cause=cause) == 0
    rows = queue.all("select redrive_of from menzil.queue order by id")
    assert [row.redrive_of for row in rows] == gone
    assert [event.metadata for event in events(queue, "redrive")] == [
        {"messages": 2, "cause": cause},
        {"messages": 1, "cause": cause},
    ]


# --- ordering keys ----------------------------------------------------------------------------------------------------


def drain(queue: Queue) -> list[int]:
    """Serve one message after the other, and return them in that order."""
    served = []
    while taken := queue.dequeue(10):
        assert len(taken) == 1, "of one key, one at a time"
        served += ids(taken)
        queue.complete(*taken)
    return served


@pytest.mark.parametrize("how", ["redrive_message", "redrive_endpoint", "redrive_all"])
def test_a_dead_letter_that_blocks_its_key_goes_before_those_that_wait(queue: Queue, how: str) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    dead = queue.send(ordering_key="k")
    behind = [queue.send(ordering_key="k", priority=priority) for priority in (0, 9)]
    queue.fail(queue.lease(), "[PERMANENT] no")
    assert queue.dequeue(10) == []
    match how:
        case "redrive_message":
            queue.call(how, letter(queue, dead).id)
        case "redrive_endpoint":
            queue.call(how, "work")
        case _:
            queue.call(how)
    (new,) = (row.id for row in queue.all("select id from menzil.queue where redrive_of = %s", dead))
    assert letter(queue, dead).blocks_key is False
    assert drain(queue) == [new, *behind]
    assert queue.one("select count(*) from menzil.key_queue") == 0


def test_a_blocked_key_stays_blocked_by_a_redriven_message_that_dies_again(queue: Queue) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    first = queue.send(ordering_key="k")
    behind = queue.send(ordering_key="k")
    queue.fail(queue.lease(), "[PERMANENT] no")
    second = queue.call("redrive_message", letter(queue, first).id)
    assert queue.fail(queue.lease(), "[PERMANENT] no") == "dead"
    assert queue.dequeue(10) == []
    assert queue.call("message_cancel", first) is False
    assert queue.call("message_cancel", second) is True
    assert drain(queue) == [behind]


def test_a_redriven_message_that_is_cancelled_frees_the_key_it_was_given(queue: Queue) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    dead = queue.send(ordering_key="k")
    behind = queue.send(ordering_key="k")
    queue.fail(queue.lease(), "[PERMANENT] no")
    new = queue.call("redrive_message", letter(queue, dead).id)
    assert queue.call("message_cancel", new) is True
    assert drain(queue) == [behind]


def test_a_dead_letter_whose_key_went_on_stands_behind_those_that_wait(queue: Queue) -> None:
    dead = queue.send(ordering_key="k")
    second, third = queue.send(ordering_key="k"), queue.send(ordering_key="k")
    queue.fail(queue.lease(), "[PERMANENT] no")
    running = queue.lease()
    new = queue.call("redrive_message", letter(queue, dead).id)
    assert running.id == second
    assert queue.dequeue(10) == []
    queue.complete(running)
    assert drain(queue) == [third, new]


def test_many_keys_blocked_and_free_are_redriven_in_order(queue: Queue) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    sent = [queue.send(ordering_key=f"k{n % 10}") for n in range(30)]
    for message in queue.dequeue(10):
        queue.fail(message, "[PERMANENT] no")
    assert queue.dequeue(10) == []
    assert queue.call("redrive_endpoint", "work") == 10
    origin = dict(queue.all("select id, coalesce(redrive_of, id) from menzil.queue"))
    served: list[int] = []
    for _ in range(3):
        taken = queue.dequeue(30)
        served += [origin[message.id] for message in taken]
        queue.complete(*taken)
    assert served == sent


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", CLOSED)
def test_an_endpoint_that_takes_no_messages_is_not_redriven(queue: Queue, how: str) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    dead = letter(queue, die(queue, "hook")).id
    kept = die(queue)
    close(queue, "hook", how)
    refused(queue, "55000", "redrive_message", dead)
    refused(queue, "55000", "redrive_endpoint", "hook")
    assert queue.call("redrive_all") == 1
    assert queue.one("select redrive_of from menzil.queue where channel = 'work'") == kept
    assert queue.one("select status from menzil.dlq where id = %s", dead) == "failed"


def test_an_erased_message_is_not_redriven(queue: Queue) -> None:
    erased = die(queue)
    queue.call("message_erase", erased)
    said = refused(queue, "55000", "redrive_message", letter(queue, erased).id)
    assert said == f"Message {erased} was erased."
    assert (queue.call("redrive_endpoint", "work"), queue.call("redrive_all")) == (0, 0)
    for how in (["redrive_endpoint", "work"], ["redrive_all"]):
        kept = die(queue)
        assert queue.call(*how) == 1
        message = queue.lease()
        assert queue.one("select redrive_of from menzil.queue") == kept
        queue.complete(message)
    assert letter(queue, erased).status == "failed"


def test_dead_letters_of_a_dropped_endpoint_are_not_given_to_the_next_of_its_name(queue: Queue) -> None:
    for _ in range(2):
        queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
        dead = letter(queue, die(queue, "hook")).id
        if queue.one("select count(*) from menzil.dlq") == 1:
            queue.call("drop_endpoint", "hook")
    assert queue.call("redrive_endpoint", "hook") == 1
    assert queue.one("select id from menzil.dlq where status = 'redriven'") == dead


def test_a_paused_endpoint_is_redriven_and_holds(queue: Queue) -> None:
    die(queue)
    queue.call("channel_pause", "work")
    assert queue.call("redrive_endpoint", "work") == 1
    assert queue.dequeue() == []
    queue.call("channel_resume", "work")
    assert len(queue.dequeue()) == 1


def test_what_does_not_fit_is_not_redriven_at_all(queue: Queue) -> None:
    for _ in range(3):
        die(queue)
    queue.call("channel_set", "work", p_max_size=2)
    for function in ("redrive_endpoint", "redrive_all"):
        refused(queue, "53400", function, *["work"][: function == "redrive_endpoint"])
    assert queue.one("select count(*) from menzil.dlq where status = 'failed'") == 3
    assert queue.waiting() == []
    assert queue.call("redrive_endpoint", "work", None, 2) == 2
    refused(queue, "53400", "redrive_message", queue.one("select id from menzil.dlq where status = 'failed'"))


def test_a_full_queue_refuses_a_redrive_before_its_first_message(queue: Queue) -> None:
    for _ in range(3):
        die(queue)
    queue.call("set_setting", "max_queue_size", "2")
    refused(queue, "53400", "redrive_all")
    assert queue.waiting() == []
    assert queue.one("select last_value from menzil.message_id") == 3


def test_a_lowered_payload_limit_does_not_keep_a_dead_letter_in(queue: Queue) -> None:
    die(queue, payload={"x": "y" * 4000})
    queue.call("set_setting", "max_payload_size", "1024")
    assert queue.call("redrive_all") == 1


@pytest.mark.parametrize(
    ("state", "function", "params"),
    [
        ("22004", "redrive_message", [None]),
        ("42704", "redrive_message", [987654321]),
        ("42704", "redrive_message", [-1]),
        ("22004", "redrive_endpoint", [None]),
        ("42704", "redrive_endpoint", ["nobody"]),
        ("42704", "redrive_endpoint", [""]),
        ("22023", "redrive_endpoint", ["work", None, 0]),
        ("22023", "redrive_endpoint", ["work", None, -1]),
    ],
)
def test_a_bad_redrive_is_refused(queue: Queue, state: str, function: str, params: list[object]) -> None:
    die(queue)
    said = refused(queue, state, function, *params)
    assert said.endswith(".")
    assert queue.waiting() == []


def test_each_redrive_is_one_event(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    first = die(queue, "hook")
    one = queue.call("redrive_message", letter(queue, first).id)
    queue.complete(queue.lease())
    for _ in range(3):
        die(queue, "hook")
    queue.call("redrive_endpoint", "hook")
    queue.complete(*queue.dequeue(5))
    die(queue)
    queue.call("redrive_all")
    queue.call("redrive_all")
    rows = [(event.entity_type, event.entity_id, event.metadata["messages"]) for event in events(queue, "redrive")]
    assert rows == [("message", str(first), 1), ("endpoint", "hook", 3), ("queue", None, 1)]
    assert events(queue, "redrive")[0].metadata["redriven_id"] == one


def test_a_rolled_back_redrive_leaves_the_dead_letter(queue: Queue) -> None:
    dead = letter(queue, die(queue, ordering_key="k")).id
    with queue.conn.transaction(force_rollback=True):
        queue.call("redrive_all")
    assert queue.one("select status from menzil.dlq") == "failed"
    assert queue.waiting() == []
    assert queue.call("redrive_message", dead)


def test_an_open_redrive_holds_up_neither_consumers_nor_another_redrive(queue: Queue, connect) -> None:
    first, second = die(queue, ordering_key="a"), die(queue, ordering_key="b")
    slow = Queue(connect(autocommit=False))
    slow.call("redrive_message", letter(queue, first).id)
    queue.conn.execute("set lock_timeout = '20s'")
    sent = queue.send(ordering_key="a")
    message = queue.lease()
    assert message.id == sent
    queue.complete(message)
    assert queue.call("redrive_endpoint", "work") == 1
    assert queue.one("select redrive_of from menzil.queue") == second
    slow.conn.commit()
    assert {message.ordering_key for message in queue.dequeue(5)} == {"a", "b"}


def test_redrive_counts_history_as_of_another_time(queue: Queue) -> None:
    """Messages of the same moment keep the order of their ids, whatever their dead letters' ids are."""
    sent = queue.send_batch("work", 3)
    for message in sent:
        created_at(queue.conn, message, "2026-01-01+00")
    for message in reversed(queue.dequeue(3)):
        queue.fail(message, "[PERMANENT] no")
    queue.call("redrive_all")
    assert [row.redrive_of for row in queue.all("select redrive_of from menzil.queue order by id")] == sent


def test_a_redrive_waits_for_another_of_the_same_letter_and_is_refused(queue: Queue, connect) -> None:
    dead = letter(queue, die(queue)).id
    slow, other = Queue(connect(autocommit=False)), Queue(connect())
    slow.call("redrive_message", dead)
    with waiting(other.conn, lambda: refused(other, "55000", "redrive_message", dead), queue.conn) as answer:
        slow.conn.commit()
    assert "already" in answer.result()
    assert len(queue.waiting()) == 1


def test_a_redrive_is_taken_back_while_its_message_waits(queue: Queue) -> None:
    old = die(queue)
    before = letter(queue, old)
    new = queue.call("redrive_message", before.id)
    assert queue.call("redrive_take_back", before.id) is True
    assert letter(queue, old) == before
    assert queue.status(new).status == "cancelled"
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="was not redriven"):
        queue.call("redrive_take_back", before.id)
    queue.call("redrive_message", before.id)
    queue.lease()
    assert queue.call("redrive_take_back", before.id) is False, "a worker has it"
    assert letter(queue, old).status == "redriven"
    events = "select entity_id from menzil.event_log where event_type = 'redrive.taken_back'"
    assert queue.all(events) == [(str(old),)]
