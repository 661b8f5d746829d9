"""Replay: what ended is sent once more, as new messages, in the order it was sent in."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from tests.sql.clock import created_at, pass_time
from tests.sql.dying import die, events
from tests.sql.queue import Queue, ids
from tests.sql.refusing import CLOSED, close, refused

JANUARY = ("2026-01-01+00", "2026-02-01+00")


def channel_id(queue: Queue, name: str = "work") -> int:
    return queue.one("select id from menzil.channels where name = %s", name)


def ended(queue: Queue, at: str = "2026-01-15+00", channel: str = "work", **options: Any) -> int:
    """A message that was sent at that time and was completed."""
    sent = queue.send(channel, **options)
    created_at(queue.conn, sent, at)
    queue.complete(*queue.dequeue(1, [channel]))
    assert queue.archived(sent).status == "completed"
    return sent


def replays(queue: Queue) -> list[int]:
    return [row.replay_of for row in queue.all("select replay_of from menzil.queue order by id")]


# --- one message ------------------------------------------------------------------------------------------------------


def test_a_replayed_message_is_new_and_has_everything_that_was_sent(queue: Queue) -> None:
    correlation = uuid.uuid4()
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
    queue.complete(queue.lease())
    before = queue.archived(old)
    new = queue.call("replay_message", old)
    row = queue.one("select * from menzil.queue")
    assert (row.id, row.replay_of, row.redrive_of, row.channel) == (new, old, None, "work")
    assert (row.payload, row.content, row.priority, row.ordering_key) == ({"a": 1}, None, 4, "k")
    assert (row.correlation_id, row.headers, row.metadata) == (correlation, {"X-A": "1"}, {"m": 1})
    assert (row.retry_count, row.num_attempts, row.last_error, row.state) == (0, 0, None, None)
    assert (row.expires_at, row.idempotency_key, row.scheduled_at) == (None, None, None)
    assert queue.archived(old) == before
    queue.complete(queue.lease())
    assert queue.archived(new).replay_of == old
    (event,) = events(queue, "replay")
    assert (event.entity_type, event.entity_id) == ("message", str(old))
    assert event.metadata == {"endpoint": "work", "replay_id": new, "messages": 1}


def test_a_replay_can_be_replayed_and_a_message_more_than_once(queue: Queue) -> None:
    first = ended(queue)
    second = queue.call("replay_message", first)
    assert queue.call("replay_message", first) != second
    queue.complete(*queue.dequeue(2))
    third = queue.call("replay_message", second)
    assert queue.one("select replay_of from menzil.queue where id = %s", third) == second


def test_a_dead_letter_is_replayed_from_the_archive_and_stays_on_the_list(queue: Queue) -> None:
    dead = die(queue)
    queue.call("replay_message", dead)
    assert queue.one("select status from menzil.dlq") == "failed"
    assert replays(queue) == [dead]


def test_a_binary_body_is_replayed(queue: Queue) -> None:
    sent = queue.call("message_create", "work", b"\x00\xff")
    queue.complete(queue.lease())
    queue.call("replay_message", sent)
    assert queue.lease().content == b"\x00\xff"


def test_a_message_that_has_not_ended_cannot_be_replayed(queue: Queue) -> None:
    sent = queue.send()
    refused(queue, "55000", "replay_message", sent)
    queue.lease()
    refused(queue, "55000", "replay_message", sent)


@pytest.mark.parametrize(("state", "message"), [("22004", None), ("42704", 987654321), ("42704", -1)])
def test_a_message_that_never_was_cannot_be_replayed(queue: Queue, state: str, message: int | None) -> None:
    refused(queue, state, "replay_message", message)


# --- a range ----------------------------------------------------------------------------------------------------------


def test_a_range_is_replayed_in_the_order_its_messages_were_sent_in(queue: Queue) -> None:
    queue.call("channel_set", "other")
    late = ended(queue, "2026-01-31 23:59:59.999999+00")
    first, second = ended(queue, "2026-01-01+00"), ended(queue, "2026-01-01+00")
    middle = ended(queue, "2026-01-15+00", priority=0)
    for outside in ("2025-12-31 23:59:59.999999+00", "2026-02-01+00"):
        ended(queue, outside)
    ended(queue, "2026-01-10+00", "other")
    assert queue.call("replay_range", channel_id(queue), *JANUARY) == 4
    assert replays(queue) == [first, second, middle, late]
    replayed = dict(queue.all("select id, replay_of from menzil.queue"))
    assert [replayed[message.id] for message in queue.dequeue(10)] == [first, second, middle, late]


def test_a_range_over_many_months_is_one_range(queue: Queue) -> None:
    sent = [ended(queue, f"2025-{month:02}-28+00") for month in (9, 11, 12)]
    assert queue.call("replay_range", channel_id(queue), "2025-01-01+00", "2026-01-01+00") == 3
    assert replays(queue) == sent


@pytest.mark.parametrize("status", ["completed", "failed", "expired", "cancelled", None])
def test_a_status_chooses_what_is_replayed(queue: Queue, status: str | None) -> None:
    now = queue.now()
    ends = {"completed": queue.send(priority=9), "failed": queue.send(priority=8), "cancelled": queue.send()}
    completed, failed = queue.dequeue(2)
    queue.complete(completed)
    queue.fail(failed, "[PERMANENT] no")
    queue.call("message_cancel", ends["cancelled"])
    ends["expired"] = queue.send(expires_at=queue.one("select now() + interval '30 seconds'"))
    pass_time(queue.conn, 31)
    queue.call("mark_expired_messages")
    window = (now - timedelta(minutes=1), now + timedelta(minutes=1))
    count = queue.call("replay_range", channel_id(queue), *window, status)
    wanted = [ends[status]] if status else sorted(ends.values())
    assert (count, sorted(replays(queue))) == (len(wanted), wanted)


def test_a_dry_run_counts_and_writes_nothing(queue: Queue) -> None:
    for _ in range(3):
        ended(queue)
    ids_before = queue.one("select last_value from menzil.message_id")
    lines = queue.one("select count(*) from menzil.event_log")
    assert queue.call("replay_range", channel_id(queue), *JANUARY, p_dry_run=True) == 3
    assert queue.call("replay_range", channel_id(queue), *JANUARY, "failed", True) == 0
    assert queue.waiting() == []
    assert queue.one("select last_value from menzil.message_id") == ids_before
    assert queue.one("select count(*) from menzil.event_log") == lines


def test_an_erased_message_is_not_replayed(queue: Queue) -> None:
    first, erased = ended(queue), ended(queue)
    queue.call("message_create", "work", b"")
    binary = queue.lease()
    created_at(queue.conn, binary.id, JANUARY[0])
    queue.complete(binary)
    queue.call("message_erase", erased)
    said = refused(queue, "55000", "replay_message", erased)
    assert said == f"Message {erased} was erased."
    assert queue.call("replay_range", channel_id(queue), *JANUARY, p_dry_run=True) == 2
    assert queue.call("replay_range", channel_id(queue), *JANUARY) == 2
    assert sorted(replays(queue)) == [first, binary.id]
    assert queue.call("replay_range", channel_id(queue), *JANUARY, p_rate=1000) == 2
    assert sorted(replays(queue)) == sorted([first, binary.id] * 2)


def test_an_empty_range_is_no_event(queue: Queue) -> None:
    assert queue.call("replay_range", channel_id(queue), *JANUARY) == 0
    assert events(queue, "replay") == []


def test_a_range_is_one_event(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    for _ in range(2):
        ended(queue, channel="hook")
    queue.call("replay_range", channel_id(queue, "hook"), *JANUARY, "completed", p_rate=5)
    (event,) = events(queue, "replay")
    assert (event.entity_type, event.entity_id) == ("endpoint", "hook")
    assert (event.metadata["messages"], event.metadata["status"], event.metadata["rate"]) == (2, "completed", 5)


def test_replayed_messages_of_a_key_keep_their_order(queue: Queue) -> None:
    sent = [ended(queue, f"2026-01-{n + 1:02}+00", ordering_key="ab"[n % 2]) for n in range(6)]
    waiting = queue.send(ordering_key="a")
    queue.call("replay_range", channel_id(queue), *JANUARY)
    origin = dict(queue.all("select id, coalesce(replay_of, id) from menzil.queue"))
    served: list[int] = []
    while taken := queue.dequeue(10):
        assert len({message.ordering_key for message in taken}) == len(taken)
        served += [origin[message] for message in ids(taken)]
        queue.complete(*taken)
    for key in (0, 1):
        wanted = sent[key::2]
        assert [message for message in served if message in wanted] == wanted
    assert served.index(waiting) < served.index(sent[0])


def test_a_rate_spreads_the_messages_from_now_on(queue: Queue) -> None:
    for n in range(10):
        ended(queue, f"2026-01-{n + 1:02}+00")
    before = queue.now()
    assert queue.call("replay_range", channel_id(queue), *JANUARY, p_rate=0.5) == 10
    rows = queue.all("select scheduled_at, created_at from menzil.queue order by id")
    waits = [(row.scheduled_at - row.created_at).total_seconds() for row in rows]
    assert waits == [2.0 * n for n in range(1, 11)]
    assert before <= rows[0].created_at <= queue.now()
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 7)
    assert len(queue.dequeue(10)) == 3
    pass_time(queue.conn, 14)
    assert len(queue.dequeue(10)) == 7


def test_a_rate_keeps_the_order_of_keys(queue: Queue) -> None:
    sent = [ended(queue, f"2026-01-{n + 1:02}+00", ordering_key="k") for n in range(5)]
    queue.call("replay_range", channel_id(queue), *JANUARY, p_rate=1000)
    origin = dict(queue.all("select id, replay_of from menzil.queue"))
    pass_time(queue.conn, 1)
    served = []
    for _ in sent:
        message = queue.lease()
        assert queue.dequeue(5) == []
        served.append(origin[message.id])
        queue.complete(message)
    assert served == sent


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "changed"),
    [
        ("22004", {"p_endpoint_id": None}),
        ("22004", {"p_from_ts": None}),
        ("22004", {"p_to_ts": None}),
        ("22004", {"p_dry_run": None}),
        ("42704", {"p_endpoint_id": 987654}),
        ("42704", {"p_endpoint_id": -1}),
        ("42704", {"p_endpoint_id": 9223372036854775807}),
        ("22023", {"p_from_ts": "2026-02-01+00"}),
        ("22023", {"p_from_ts": "2026-03-01+00"}),
        ("22023", {"p_from_ts": "-infinity"}),
        ("22023", {"p_to_ts": "infinity"}),
        ("22023", {"p_status": "complete"}),
        ("22023", {"p_status": "pending"}),
        ("22023", {"p_status": ""}),
        ("22023", {"p_rate": 0.0}),
        ("22023", {"p_rate": -1.0}),
        ("22023", {"p_rate": float("nan")}),
        ("22023", {"p_rate": float("inf")}),
        ("22023", {"p_rate": 1e-9}),
        ("22023", {"p_rate": 1e-310}),
    ],
)
def test_a_bad_range_is_refused_and_replays_nothing(queue: Queue, state: str, changed: dict[str, Any]) -> None:
    ended(queue)
    given = {"p_endpoint_id": channel_id(queue), "p_from_ts": JANUARY[0], "p_to_ts": JANUARY[1]} | changed
    assert refused(queue, state, "replay_range", **given).endswith(".")
    assert queue.waiting() == []


@pytest.mark.parametrize("how", CLOSED)
def test_nothing_is_replayed_to_an_endpoint_that_takes_no_messages(queue: Queue, how: str) -> None:
    made = queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    sent = ended(queue, channel="hook")
    close(queue, "hook", how)
    refused(queue, "55000", "replay_message", sent)
    refused(queue, "55000", "replay_range", made, *JANUARY)
    refused(queue, "55000", "replay_range", made, *JANUARY, p_dry_run=True)
    assert queue.one("select count(*) from menzil.queue where replay_of is not null") == 0


@pytest.mark.parametrize("limit", ["channel", "queue"])
def test_what_does_not_fit_is_not_replayed_at_all(queue: Queue, limit: str) -> None:
    sent = [ended(queue) for _ in range(3)]
    if limit == "channel":
        queue.call("channel_set", "work", p_max_size=2)
    else:
        queue.call("set_setting", "max_queue_size", "2")
    refused(queue, "53400", "replay_range", channel_id(queue), *JANUARY)
    assert queue.waiting() == []
    for message in sent[:2]:
        queue.call("replay_message", message)
    refused(queue, "53400", "replay_message", sent[2])


def test_a_range_reads_only_the_months_it_names(queue: Queue) -> None:
    ended(queue, "2025-06-15+00")
    ended(queue)
    channel = channel_id(queue)
    scans = """select relname, seq_scan + coalesce(idx_scan, 0) from pg_stat_xact_user_tables
                where schemaname = 'menzil' and relname ~ '^archive_'"""
    with queue.conn.transaction():
        before = dict(queue.all(scans))
        queue.call("replay_range", channel, *JANUARY)
        after = dict(queue.all(scans))
    assert [name for name, count in after.items() if count > before.get(name, 0)] == ["archive_2026_01"]
