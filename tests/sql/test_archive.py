"""The archive: every ended message once, complete. Its body lies in the partition of the month it was sent in."""

from __future__ import annotations

import json
import uuid

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import pass_time
from tests.sql.queue import Queue

COLUMNS = """id status channel endpoint_id priority num_attempts retry_count created_at scheduled_at expires_at
    first_leased_at leased_at ended_at ended_xid worker payload content payload_hash ordering_key idempotency_key
    correlation_id headers metadata last_error state redrive_of replay_of response"""


def place(queue: Queue, message: int) -> str:
    return queue.one("select tableoid::regclass::text from menzil.message where id = %s", message)


def months(queue: Queue) -> list[str]:
    return [
        row[0]
        for row in queue.all(
            "select inhrelid::regclass::text from pg_inherits where inhparent = 'menzil.message'::regclass order by 1"
        )
    ]


def send_in(queue: Queue, message: int, at: str) -> None:
    """Pretend that a message was sent in a month that has no partition."""
    with queue.conn.transaction():
        queue.conn.execute("update menzil.message set created_at = %s where id = %s", [at, message])
        queue.conn.execute("update menzil.line set flags = flags | 1 where first_id is not null")  # not of this month
    assert place(queue, message) == "menzil.archive_default"


def test_an_archived_message_is_complete(queue: Queue) -> None:
    correlation = uuid.uuid4()
    sent = queue.send(
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
    (first,) = queue.dequeue(worker="one")
    started = queue.one("select processing_started_at from menzil.queue")
    queue.defer(first, state=b"s")
    (second,) = queue.dequeue(worker="two")
    with queue.conn.transaction():
        queue.complete(second)
        xid = queue.one("select pg_current_xact_id()::text")
    row = queue.archived(sent)
    assert set(row._fields) == set(COLUMNS.split())
    assert (row.status, row.channel, row.priority, row.num_attempts, row.retry_count) == ("completed", "work", 4, 2, 0)
    assert (row.payload, row.content, row.state) == ({"a": 1}, None, b"s")
    assert (row.idempotency_key, row.ordering_key, row.correlation_id) == ("i", "k", correlation)
    assert (row.headers, row.metadata, row.worker) == ({"X-A": "1"}, {"m": 1}, "two")
    assert row.first_leased_at == started
    assert row.created_at <= row.first_leased_at < row.leased_at <= row.ended_at
    assert str(row.ended_xid) == xid
    assert (row.scheduled_at.year, row.expires_at.year) == (2001, 2099)
    assert row.endpoint_id == queue.one("select id from menzil.channels")


@pytest.mark.parametrize("status", ["completed", "failed", "expired", "cancelled"])
def test_every_end_is_archived_once_with_its_status(queue: Queue, status: str) -> None:
    sent = queue.send(expires_at=queue.one("select now() + interval '30 seconds'"))
    if status == "completed":
        queue.complete(queue.lease())
    elif status == "failed":
        queue.fail(queue.lease(), "[PERMANENT] no")
    elif status == "expired":
        pass_time(queue.conn, 31)
        queue.dequeue()
    else:
        queue.call("message_cancel", sent)
    row = queue.archived(sent)
    assert row.status == status
    assert row.ended_at >= row.created_at
    assert row.ended_xid is not None
    assert (row.first_leased_at is None) == (status in ("expired", "cancelled"))
    assert queue.one("select count(*) from menzil.queue") == 0


def test_a_dead_letter_is_archived_and_listed(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.dequeue(worker="w")[0], "[PERMANENT] no")
    row = queue.archived(sent)
    assert (row.status, row.last_error, row.worker, row.num_attempts) == ("failed", "[PERMANENT] no", "w", 1)
    assert queue.one("select original_message_id, endpoint_name from menzil.dlq") == (sent, "work")


def test_a_message_lies_in_the_month_it_was_sent_in(queue: Queue) -> None:
    sent = queue.send()
    queue.complete(queue.lease())
    assert place(queue, sent) == queue.one("select 'menzil.archive_' || to_char(now() at time zone 'UTC', 'YYYY_MM')")


def test_this_month_and_three_more_are_there_from_the_start(queue: Queue) -> None:
    wanted = queue.all(
        """select to_char(m, '"menzil.archive"_YYYY_MM') from date_trunc('month', now() at time zone 'UTC') now,
             generate_series(now, now + interval '3 months', interval '1 month') m"""
    )
    assert months(queue) == sorted([row[0] for row in wanted] + ["menzil.archive_default"])


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/St_Johns"])
@pytest.mark.parametrize(
    ("at", "month"),
    [
        ("2021-02-28 23:59:59.999999+00", "2021_02"),
        ("2021-03-01 00:00:00+00", "2021_03"),
        ("2020-12-31 23:30:00+00", "2020_12"),
        ("2024-02-29 12:00:00+00", "2024_02"),
    ],
)
def test_a_message_without_a_month_gets_it_once_it_ended_whatever_the_time_zone(
    queue: Queue, zone: str, at: str, month: str
) -> None:
    queue.conn.execute(f"set timezone = '{zone}'")
    sent = queue.send()
    send_in(queue, sent, at)
    assert queue.call("archive_completed_messages", 0) == 0  # it lives
    queue.complete(queue.lease())
    assert queue.call("archive_completed_messages", 3600) == 0  # it has not been over for long
    assert queue.call("archive_completed_messages", 0) == 1
    assert place(queue, sent) == f"menzil.archive_{month}"
    assert queue.one("select count(*) from menzil.archive_default") == 0
    assert queue.status(sent).status == queue.archived(sent).status == "completed"


def test_many_late_ends_in_many_months_find_their_places(queue: Queue) -> None:
    sent = queue.send_batch("work", 6)
    for n, message in enumerate(sent):
        send_in(queue, message, f"2022-{n % 3 + 1:02}-10+00")
    taken = queue.dequeue(10)
    queue.complete(*taken[:4])
    queue.fail(taken[4], "[PERMANENT]")
    queue.defer(taken[5])
    queue.call("message_cancel", sent[5])
    assert queue.call("archive_completed_messages", 0) == 6
    places = [place(queue, message) for message in sent]
    assert places == [f"menzil.archive_2022_{n % 3 + 1:02}" for n in range(6)]
    assert queue.one("select count(*) from menzil.archive_default") == 0
    statuses = dict(queue.all("select id, status from menzil.archive"))
    assert statuses == dict(zip(sent, ["completed"] * 4 + ["failed", "cancelled"], strict=True))


def test_a_missing_month_keeps_no_message_from_its_way(queue: Queue) -> None:
    month = queue.one("select to_char(now() at time zone 'UTC', 'YYYY_MM')")
    renew = "select menzil._renew_hot(name, clock_timestamp()) from menzil.hot_function"
    queue.conn.execute(
        f"""drop table menzil.archive_{month};
            delete from menzil.archive_month where to_char(month_start at time zone 'UTC', 'YYYY_MM') = '{month}';
            {renew}"""
    )
    sent = queue.send()
    queue.complete(queue.lease())
    assert place(queue, sent) == "menzil.archive_default"
    assert queue.call("maintain_archive_partitions") == 1
    assert place(queue, sent) == f"menzil.archive_{month}"
    queue.conn.execute(renew)
    assert place(queue, queue.send()) == f"menzil.archive_{month}"
    assert queue.status(sent).status == "completed"


def test_partitions_are_made_as_far_ahead_as_asked(queue: Queue) -> None:
    before = len(months(queue))
    assert queue.call("maintain_archive_partitions") == 0
    assert queue.call("maintain_archive_partitions", 5) == 2
    assert queue.call("maintain_archive_partitions", 5) == 0
    assert len(months(queue)) == before + 2


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_months_ahead_are_counted_in_utc(queue: Queue, zone: str) -> None:
    queue.conn.execute(f"set timezone = '{zone}'")
    for at in ("2031-03-01 05:00+00", "2033-03-31 18:00+00", "2036-02-29 20:00+00", "2039-01-31 20:00+00"):
        queue.one("select menzil._ensure_archive_months(%s, 1)", at)
        assert queue.one("select menzil._ensure_archive_months(%s, 2)", at) == 1, at


def test_a_month_has_the_indexes_of_the_archive(queue: Queue) -> None:
    month = queue.one("select to_char(now() at time zone 'UTC', 'YYYY_MM')")
    rows = queue.all(
        "select indexdef from pg_indexes where schemaname = 'menzil' and tablename = %s", f"archive_{month}"
    )
    definitions = " ".join(row[0] for row in rows)
    assert "USING brin (created_at) WITH (pages_per_range='64', autosummarize='on')" in definitions
    assert "btree (id)" in definitions


def test_a_message_is_found_by_its_id_without_a_scan(queue: Queue) -> None:
    queue.conn.execute("set enable_seqscan = off")
    plan = "\n".join(row[0] for row in queue.all("explain select * from menzil.archive where id = 5"))
    assert "Seq Scan" not in plan


def test_nothing_is_archived_when_the_end_is_rolled_back(queue: Queue) -> None:
    queue.send_batch("work", 3)
    taken = queue.dequeue(3)
    with queue.conn.transaction(force_rollback=True):
        queue.complete(taken[0])
        queue.fail(taken[1], "[PERMANENT]")
        send_in(queue, taken[2].id, "2019-05-05+00")
        queue.complete(taken[2])
        assert queue.call("archive_completed_messages", 0) == 1
    assert queue.one("select count(*) from menzil.archive") == 0
    assert queue.one("select count(*) from menzil.dlq") == 0
    assert "menzil.archive_2019_05" not in months(queue)
    send_in(queue, taken[2].id, "2019-05-05+00")
    queue.complete(taken[2])
    assert queue.call("archive_completed_messages", 0) == 1
    assert place(queue, taken[2].id) == "menzil.archive_2019_05"


def test_a_reader_of_the_archive_keeps_a_missing_month_waiting_and_nothing_else(queue: Queue, connect) -> None:
    sent = queue.send()
    send_in(queue, sent, "2018-07-01+00")
    queue.complete(queue.lease())
    reader = connect(autocommit=False)
    reader.execute("select count(*) from menzil.archive")
    assert queue.call("archive_completed_messages", 0) == 0
    assert queue.send() > sent
    reader.rollback()
    assert queue.call("archive_completed_messages", 0) == 1
    assert place(queue, sent) == "menzil.archive_2018_07"


def test_the_end_of_a_message_is_found_among_its_neighbours(queue: Queue) -> None:
    """One row tells the end of many messages: in a row, with gaps, and of one far away."""
    sent = queue.send_batch("work", 30)
    taken = {message.id: message for message in queue.dequeue(30)}
    queue.complete(*(taken[id] for id in sent[:10]))
    queue.complete(*(taken[id] for id in sent[10::3]))
    queue.fail(taken[sent[12]], "[PERMANENT]")
    ended = {*sent[:10], *sent[10::3], sent[12]}
    assert {row.id for row in queue.all("select id from menzil.archive")} == ended
    for message in sent:
        assert len(queue.all("select 1 from menzil.archive where id = %s", message)) == (message in ended)
        assert (queue.status(message).ended_at is not None) == (message in ended)


def test_what_a_message_said_can_be_erased_once_it_ended(queue: Queue) -> None:
    secret = "canary-4711"
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    first, second, third = (
        queue.send("hook", {"card": secret}, headers={"X-A": secret}, metadata={"a": secret}) for _ in range(3)
    )
    taken = {message.id: message for message in queue.dequeue(3)}
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=f"Message {first} has not ended yet"):
        queue.call("message_erase", first)
    answers = [Jsonb({"body": secret}), Jsonb({"body": "kept"})]
    queue.all("select * from menzil.message_complete(%s, %s, %s)", [second, third], [1, 1], answers)
    queue.defer(taken[first], state=secret.encode())
    (again,) = queue.dequeue(1)
    queue.all(
        "select * from menzil.message_fail(%s, %s, %s, null, %s)",
        [first], [again.num_attempts], [f"[PERMANENT] {secret}"], [Jsonb({"body": secret})],
    )  # fmt: skip
    facts = "id, status, channel, num_attempts, created_at, ended_at, worker"
    before = queue.all(f"select {facts} from menzil.archive order by id")
    assert queue.call("message_erase", first) is True
    assert queue.call("message_erase", second) is True
    assert queue.call("message_erase", second) is False  # nothing is left to erase
    for look in ("archive", "dlq", "attempts", "queue", "event_log"):
        told = json.dumps(queue.all(f"select to_jsonb(r) from menzil.{look} r where to_jsonb(r)::text like '%canary%'"))
        assert look == "archive" or secret not in told
        assert told.count('"id":') == (look == "archive")  # the third keeps its own
    assert secret.encode() not in [row.state for row in queue.all("select state from menzil.archive")]
    assert queue.archived(third).response == {"body": "kept"}
    assert queue.archived(third).payload == {"card": secret}
    assert queue.all(f"select {facts} from menzil.archive order by id") == before
    erased = queue.all("select entity_id from menzil.event_log where event_type = 'message.erased' order by id")
    assert [row.entity_id for row in erased] == [str(first), str(second)]
    with pytest.raises(psycopg.errors.UndefinedObject):
        queue.call("message_erase", 999_999)
