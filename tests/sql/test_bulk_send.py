"""A bulk send: many rows, many writers, one commit; the rules are those of every send."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue
from tests.sql.staging import Bulk, bulk, row, stagings

CORRELATION = "6f1c7b2e-4c1d-4b8e-9b57-0d0c3e8a1f11"


def everything(queue: Queue) -> list[Any]:
    """How many rows each place of a message has."""
    places = ("message", "line", "scheduled", "key_queue", "expiring", "key", "size_change")
    return [queue.one(f"select count(*) from menzil.{place}") for place in places]


def test_rows_become_messages_that_can_be_leased_in_order(queue: Queue) -> None:
    send = Bulk(queue)
    send.stage("b", [row(payload=2), row(payload=3)])
    send.stage("a", [row(payload=0), row(payload=1)])
    assert send.commit("a", "b") == (4, 4)
    leased = queue.dequeue(10)
    assert [message.payload for message in leased] == [0, 1, 2, 3]
    assert [message.id for message in leased] == [1, 2, 3, 4]
    assert stagings(queue) == []


def test_everything_a_message_can_carry_arrives(queue: Queue) -> None:
    options: dict[str, Any] = {
        "priority": 7, "ordering_key": "k", "idempotency_key": "i", "correlation_id": CORRELATION,
        "scheduled_at": "2001-01-01Z", "expires_at": "2099-01-01Z", "headers": '{"X-A": "1"}', "metadata": '{"m": 1}',
        "replay_of": 12,
    }  # fmt: skip
    assert bulk(queue, row(payload={"a": 1}, **options)) == (1, 1)
    message = queue.one("select * from menzil.queue")
    assert (message.payload, message.priority, message.ordering_key) == ({"a": 1}, 7, "k")
    assert (message.idempotency_key, message.correlation_id) == ("i", UUID(CORRELATION))
    assert (message.headers, message.metadata, message.replay_of) == ({"X-A": "1"}, {"m": 1}, 12)
    assert (message.scheduled_at.year, message.expires_at.year) == (2001, 2099)
    assert queue.lease().payload == {"a": 1}


def test_bytes_arrive_as_bytes(queue: Queue) -> None:
    assert bulk(queue, row(content=b"\x00\xff"), row()) == (2, 2)
    assert [message.content for message in queue.dequeue(2)] == [b"\x00\xff", None]


def test_a_later_row_waits_for_its_time_and_an_ordered_one_for_its_turn(queue: Queue) -> None:
    rows = [row(scheduled_at="2099-01-01Z"), row(ordering_key="k"), row(ordering_key="k"), row()]
    assert bulk(queue, *rows) == (4, 4)
    assert {message.id for message in queue.dequeue(10)} == {2, 4}
    assert everything(queue)[2] == 1


def test_the_highest_priority_goes_first_and_the_past_jumps_the_line(queue: Queue) -> None:
    bulk(queue, row(payload="1"), row(payload="2", priority=10), row(payload="3", scheduled_at="2001-01-01Z"))
    assert [message.payload for message in queue.dequeue(3)] == [2, 3, 1]


def test_a_try_that_is_not_named_does_not_count(queue: Queue) -> None:
    send = Bulk(queue)
    send.stage("failed", [row()] * 3)
    send.stage("good", [row(payload=1)])
    assert send.commit("good") == (1, 1)
    assert queue.all("select payload from menzil.message") == [(1,)]


def test_a_send_without_rows_is_done_too(queue: Queue) -> None:
    send = Bulk(queue)
    assert send.commit() == (0, 0)
    assert queue.rows("bulk_open", "s") == [("done", None)]


def test_a_send_that_is_done_stays_done(queue: Queue) -> None:
    assert bulk(queue, row()) == (1, 1)
    again = Bulk(queue)
    assert (again.opened.state, again.opened.staging) == ("done", None)
    assert again.commit("whatever", counts=[7]) == (1, 1)
    assert again.abort() is False
    assert everything(queue)[0] == 1
    assert queue.one("select state, row_count, created_count, first_id, last_id from menzil.bulk_sends") == (
        "done", 1, 1, 1, 1,
    )  # fmt: skip


def test_opening_twice_shares_the_table_and_what_a_dead_driver_staged_is_not_sent(queue: Queue) -> None:
    dead = Bulk(queue)
    dead.stage("dead", [row()] * 2)
    send = Bulk(queue)
    assert send.opened == dead.opened
    send.stage("t", [row()])
    assert send.commit("t") == (1, 1)
    assert (everything(queue)[0], stagings(queue)) == (1, [])


def test_an_aborted_send_leaves_nothing_and_its_id_is_free(queue: Queue) -> None:
    send = Bulk(queue)
    send.stage("t", [row()])
    assert send.abort() is True
    assert stagings(queue) == []
    with pytest.raises(psycopg.errors.UndefinedObject, match=r"There is no send 's'"):
        send.commit("t", counts=[1])
    assert bulk(queue, row()) == (1, 1)


def test_rows_lost_with_the_server_are_missed(queue: Queue) -> None:
    send = Bulk(queue)
    send.stage("t", [row()] * 3)
    queue.conn.execute(f"truncate menzil.{send.opened.staging}")  # what a crash does to an unlogged table
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="3 staged rows and 0 are there") as refused:
        send.commit("t", counts=[3])
    assert "run it again" in refused.value.diag.message_hint
    send.stage("u", [row()] * 3)
    assert send.commit("u") == (3, 3)


@pytest.mark.parametrize("counts", [[1], [3]])
def test_a_count_that_differs_from_what_is_there_sends_nothing(queue: Queue, counts: list[int]) -> None:
    send = Bulk(queue)
    send.stage("t", [row()] * 2)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        send.commit("t", counts=counts)
    assert everything(queue) == [0] * 7


def test_rows_that_are_numbered_twice_send_nothing(queue: Queue) -> None:
    send = Bulk(queue)
    send.stage("t", [row()])
    send.stage("t", [row()])
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        send.commit("t", counts=[2])


def test_a_staging_table_that_was_taken_away_is_made_again(queue: Queue) -> None:
    send = Bulk(queue)
    queue.conn.execute(f"drop table menzil.{send.opened.staging}")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        send.commit("t", counts=[1])
    assert bulk(queue, row()) == (1, 1)


BAD = [
    ("42704", "There is no channel or endpoint named 'nobody'.", row("nobody")),
    ("22004", "A channel or endpoint name is needed", row(None)),
    ("55000", "Endpoint 'off' is disabled", row("off")),
    ("55000", "Channel 'closed' is released", row("closed")),
    ("22004", "A payload is needed", {"endpoint": "work"}),
    ("22023", "not both", {"endpoint": "work", "payload": "1", "content": b"1"}),
    ("22023", "The payload is not JSON", row(payload="{")),
    ("22023", "The payload is not JSON", row(payload=r'"\u0000"')),
    ("22023", "The payload is not JSON", row(payload="[" * 100_000)),
    ("54000", "The payload has 2005 bytes, the limit is 2000.", row(payload="1e2004")),
    ("54000", "The payload has 2001 bytes, the limit is 2000.", row(content=b"x" * 2001)),
    ("22023", "Priority 11 is out of range", row(priority=11)),
    ("22023", "Priority -1 is out of range", row(priority=-1)),
    ("22023", "The ordering key must have 1 to 1024 bytes", row(ordering_key="")),
    ("22023", "The ordering key must have 1 to 1024 bytes", row(ordering_key="é" * 513)),
    ("22023", "The idempotency key must have 1 to 1024 bytes", row(idempotency_key="")),
    ("22023", "The correlation id is not a UUID.", row(correlation_id="7")),
    ("22023", "would expire before it is due", row(scheduled_at="2030-01-01Z", expires_at="2029-01-01Z")),
    ("22023", "years 1 to 9999", row(scheduled_at="infinity")),
    ("22023", "years 1 to 9999", row(expires_at="-infinity")),
    ("22023", "The headers are not JSON.", row(headers="{")),
    ("22023", "The headers must be a JSON object.", row(headers="[1]")),
    ("22023", "'a b' is not a header name.", row(headers='{"a b": "1"}')),
    ("22023", "The value of header 'a' must be one line", row(headers='{"a": "1\\n2"}')),
    ("22023", "The metadata is not JSON.", row(metadata="x")),
    ("22023", "The metadata must be a JSON object.", row(metadata="1")),
    ("54000", "the limit is 2000", row(metadata='{"a": "' + "x" * 2000 + '"}')),
]


@pytest.mark.parametrize(("state", "said", "bad"), BAD)
def test_one_bad_row_refuses_the_whole_send_and_is_named(queue: Queue, state: str, said: str, bad: Any) -> None:
    queue.call("create_endpoint", "off", "http", {"url": "https://example.com/"})
    queue.call("disable_endpoint", "off")
    queue.call("channel_set", "closed")
    queue.send("closed")
    queue.call("channel_release", "closed")
    queue.conn.execute("select menzil.set_setting('max_payload_size', '2000')")
    before = everything(queue)
    send = Bulk(queue)
    send.stage("t", [row(), bad, row()])
    with pytest.raises(psycopg.Error) as refused:
        send.commit("t")
    message = refused.value.diag.message_primary
    assert refused.value.sqlstate == state
    assert message.startswith("1 of 3 rows cannot be sent, so none was. Row 2")
    assert said in message
    assert refused.value.diag.message_hint
    assert everything(queue) == before
    # The send is still open: the same id with a good row goes through.
    send.stage("u", [row()])
    assert send.commit("u") == (1, 1)


def test_many_bad_rows_are_counted_and_three_are_shown_without_their_payloads(queue: Queue) -> None:
    rows = [row(payload='{"secret": ', ordering_key=f"key-{n}") for n in range(5)]
    with pytest.raises(psycopg.Error) as refused:
        bulk(queue, *rows, row(), row("nobody"))
    message = refused.value.diag.message_primary
    assert message.startswith("6 of 7 rows cannot be sent")
    assert re.findall(r"Row (\d+)", message) == ["1", "2", "3"]
    assert "with ordering key 'key-0'" in message
    assert "secret" not in str(refused.value)
    assert refused.value.sqlstate == "22023"  # more than one kind of fault


def test_a_queue_without_room_refuses_the_whole_send(queue: Queue) -> None:
    queue.conn.execute("select menzil.set_setting('max_queue_size', '3')")
    queue.send()
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="Queue backpressure"):
        bulk(queue, row(), row(), row())
    assert everything(queue)[0] == 1
    assert bulk(queue, row(), row(), send_id="smaller") == (2, 2)


def test_a_channel_without_room_refuses_the_whole_send_and_counts_what_it_takes(queue: Queue) -> None:
    queue.call("channel_set", "tight", p_max_size=2)
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="Channel 'tight' is full"):
        bulk(queue, row(), row("tight"), row("tight"), row("tight"))
    assert everything(queue)[0] == 0
    assert bulk(queue, row("tight"), row(), row("tight"), send_id="fits") == (3, 3)
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
        queue.send("tight")


def test_a_key_that_is_held_with_the_same_payload_counts_and_is_not_created(queue: Queue) -> None:
    queue.call("channel_set", "tight", p_max_size=2)
    queue.send("tight", {"a": 1}, idempotency_key="live")
    queue.send("work", {"a": 1}, idempotency_key="ended")
    queue.complete(queue.lease(["work"]))
    rows = [
        row("tight", {"a": 1}, idempotency_key="live"),
        row("work", {"a": 1}, idempotency_key="ended"),
        row("tight", {"b": 1}, idempotency_key="new"),
        row("tight", {"b": 1}, idempotency_key="new"),
        row("work", {"c": 1}),
    ]
    assert bulk(queue, *rows) == (5, 2)
    assert queue.all("select channel, idempotency_key from menzil.queue order by id") == [
        ("tight", "live"), ("tight", "new"), ("work", None),
    ]  # fmt: skip
    assert len(queue.dequeue(10)) == 3
    assert stagings(queue) == []


@pytest.mark.parametrize("end", ["cancelled", "failed", "completed long ago"])
def test_a_key_that_no_message_holds_any_more_is_free_again(queue: Queue, end: str) -> None:
    first = queue.send(payload={"a": 1}, idempotency_key="k")
    if end == "cancelled":
        queue.call("message_cancel", first)
    elif end == "failed":
        queue.fail(queue.lease(), "[PERMANENT] no")
    else:
        queue.complete(queue.lease())
        pass_time(queue.conn, queue.one("select idempotency_retention + 1 from menzil.setting_value"))
    rows = [row(payload={"a": 2}, idempotency_key=key) for key in ("k", "l", "k")]
    assert bulk(queue, *rows) == (3, 2)
    second = queue.one("select id from menzil.queue where idempotency_key = 'k'")
    assert second != first
    assert queue.send(payload={"a": 2}, idempotency_key="k") == second
    with pytest.raises(psycopg.errors.UniqueViolation):
        queue.send(payload={"a": 1}, idempotency_key="k")


def test_many_rows_of_several_lanes_are_leased_in_their_order_and_none_is_left(queue: Queue) -> None:
    queue.call("channel_set", "other")
    rows = [row(["work", "other"][n % 3 == 0], n, priority=5 if n % 7 == 0 else 0) for n in range(2000)]
    assert bulk(queue, *rows) == (2000, 2000)
    assert queue.one("select max(cardinality(ids)) <= 512 and count(*) < 20 from menzil.line")
    found: list[Any] = []
    while taken := queue.dequeue(300):
        found += taken
    assert sorted(message.payload for message in found) == list(range(2000))
    for channel, priority in (("work", 0), ("work", 5), ("other", 0), ("other", 5)):
        lane = [m.id for m in found if (m.channel, m.priority) == (channel, priority)]
        assert lane == sorted(lane), (channel, priority)


def test_rows_of_one_lane_are_told_in_one_line(queue: Queue) -> None:
    assert bulk(queue, *[row(payload=n, priority=3) for n in range(700)]) == (700, 700)
    (line,) = queue.all("select rank, first_id, n, flags, ids from menzil.line")
    assert line == (7, 1, 700, 0, None)
    assert [message.payload for message in queue.dequeue(700)] == list(range(700))


def test_a_row_that_expires_ends_when_its_time_comes(queue: Queue) -> None:
    assert bulk(queue, row(expires_at="2099-01-01Z"), row(expires_at="2001-01-01Z")) == (2, 2)
    assert queue.call("mark_expired_messages") == 1
    assert queue.archived(2).status == "expired"
    assert [message.id for message in queue.dequeue(5)] == [1]


@pytest.mark.parametrize("where", ["live", "ended", "batch"])
def test_a_key_with_another_payload_refuses_the_whole_send(queue: Queue, where: str) -> None:
    rows = [row(), row(payload={"a": 2}, idempotency_key="k")]
    if where == "batch":
        rows.append(row(payload={"a": 1}, idempotency_key="k"))
    else:
        queue.send(payload={"a": 1}, idempotency_key="k")
    if where == "ended":
        queue.complete(queue.lease())
    before = everything(queue)
    with pytest.raises(psycopg.errors.UniqueViolation, match="Idempotency key 'k' conflict"):
        bulk(queue, *rows)
    assert everything(queue) == before


def test_the_event_log_and_the_view_tell_about_it(queue: Queue) -> None:
    bulk(queue, row(), row())
    event = queue.one("select entity_id, metadata from menzil.event_log where event_type = 'bulk_send'")
    assert event == ("s", {"rows": 2, "messages": 2})


def test_the_reaper_takes_what_dead_drivers_left_and_nothing_else(queue: Queue) -> None:
    dead, young = Bulk(queue, "dead"), Bulk(queue, "young")
    queue.conn.execute("update menzil.bulk_send set touched_at = touched_at - interval '2 days' where send_id = 'dead'")
    bulk(queue, row(), send_id="done")
    assert queue.call("reap_bulk_sends") == 1
    assert stagings(queue) == [young.opened.staging]
    assert queue.all("select send_id from menzil.bulk_sends order by 1") == [("done",), ("young",)]
    queue.conn.execute("delete from menzil.bulk_send where send_id = 'young'")  # a table that nobody knows
    assert queue.call("reap_bulk_sends", p_limit=1) == 1
    assert (stagings(queue), dead.opened.state) == ([], "open")
    assert queue.call("reap_bulk_sends") == 0


def test_a_member_of_the_pipeline_group_stages_and_commits_and_reads_no_staged_row(queue: Queue, connect) -> None:
    pipeline = Queue(connect())
    pipeline.conn.execute("set role menzil_pipeline")
    send = Bulk(pipeline)
    send.stage("t", [row()])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        pipeline.all(f"select * from menzil.{send.opened.staging}")
    assert send.commit("t", counts=[1]) == (1, 1)
    other = Queue(connect())
    other.conn.execute("set role menzil_application")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        Bulk(other, "x")


@pytest.mark.parametrize(
    ("state", "call"),
    [
        ("22004", "bulk_open(null)"),
        ("22023", "bulk_open('')"),
        ("22023", "bulk_open(repeat('x', 1025))"),
        ("22004", "bulk_commit(null, '{}', '{}')"),
        ("22004", "bulk_commit('s', null, '{}')"),
        ("22004", "bulk_commit('s', array[null], array[1])"),
        ("22023", "bulk_commit('s', array['a'], '{}')"),
        ("22023", "bulk_commit('s', array['a', 'a'], array[1, 1])"),
        ("42704", "bulk_commit('never', '{}', '{}')"),
        ("22004", "bulk_abort(null)"),
        ("22004", "reap_bulk_sends(null)"),
        ("22023", "reap_bulk_sends('-1 day')"),
        ("22023", "reap_bulk_sends(p_limit := 0)"),
    ],
)
def test_a_bad_call_is_refused(queue: Queue, state: str, call: str) -> None:
    Bulk(queue)
    with pytest.raises(psycopg.Error) as refused:
        queue.all(f"select * from menzil.{call}")
    assert refused.value.sqlstate == state
    assert refused.value.diag.message_hint


def test_names_of_users_never_become_names_of_tables(queue: Queue) -> None:
    send = Bulk(queue, "x'; drop table menzil.message; --")
    assert re.fullmatch(r"bulk_staging_\d+", send.opened.staging)
    send.stage("t", [row()])
    assert send.commit("t") == (1, 1)


@pytest.mark.parametrize("count", [-1, 2**63 - 1, -(2**63)])
def test_a_count_beyond_all_counting_is_refused(queue: Queue, count: int) -> None:
    send = Bulk(queue, "beyond")
    send.stage("a", [row("work")])
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="number of rows"):
        queue.all("select * from menzil.bulk_commit('beyond', array['a', 'b'], %s::bigint[])", [count, 1])
    assert queue.waiting() == []
