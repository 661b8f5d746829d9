"""Months of the archive come in time and go when they are old; tries and events go with them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait

import psycopg
import pytest

from tests.sql.clock import created_at
from tests.sql.dying import die, events
from tests.sql.queue import Queue
from tests.sql.test_archive import months, place

BACK = "select to_char(date_trunc('month', now() at time zone 'UTC') - make_interval(months => %s), 'YYYY_MM')"


def month(queue: Queue, back: int) -> str:
    """The partition of so many months ago."""
    return f"menzil.archive_{queue.one(BACK, back)}"


def ended(queue: Queue, back: int) -> int:
    """A message that was sent so many months ago and ended."""
    sent = queue.send()
    created_at(queue.conn, sent, queue.one("select now() - make_interval(months => %s)", back))
    queue.call("message_cancel", sent)
    return sent


def default_rows(queue: Queue) -> int:
    return queue.one("select count(*) from menzil.archive_default")


# --- in time ----------------------------------------------------------------------------------------------------------

ENDS = ["2031-01-01", "2031-02-01", "2032-03-01", "2031-03-01", "2031-10-01"]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
@pytest.mark.parametrize("end", ENDS)
def test_nothing_lands_in_the_default_partition_at_the_end_of_a_month(queue: Queue, end: str, zone: str) -> None:
    """Bodies are written in the last moment of a month and in the first of the next, by sessions of any time zone."""
    queue.conn.execute(f"set timezone = '{zone}'")
    last, first = queue.one("select u - interval '1 microsecond', u from (select %s::timestamptz as u) u", f"{end}+00")
    assert queue.one("select menzil._ensure_archive_months(%s, 1)", last) == 2
    for at in (last, first):
        sent = queue.send()
        queue.conn.execute("update menzil.message set created_at = %s where id = %s", [at, sent])
        wanted = queue.one("""select to_char(%s at time zone 'UTC', '"menzil.archive"_YYYY_MM')""", at)
        assert place(queue, sent) == wanted
    assert default_rows(queue) == 0


@pytest.mark.parametrize("at", ["2030-11-30 23:59:59.999999+00", "2030-12-31 23:59:59+00", "2032-02-29 12:00+00"])
def test_the_current_month_and_three_more_are_there_at_any_moment(queue: Queue, at: str) -> None:
    assert queue.one("select menzil._ensure_archive_months(%s, 3)", at) == 4
    wanted = queue.all(
        """select to_char(date_trunc('month', %s::timestamptz at time zone 'UTC') + n * interval '1 month',
                          '"menzil.archive"_YYYY_MM') from generate_series(0, 3) n""",
        at,
    )
    assert {row[0] for row in wanted} <= set(months(queue))
    next_moment = queue.one("select %s::timestamptz + interval '1 second'", at)
    assert queue.one("select menzil._ensure_archive_months(%s, 2)", next_moment) == 0


# --- leftovers --------------------------------------------------------------------------------------------------------


def test_there_are_no_leftovers_as_long_as_nobody_takes_a_partition_away(queue: Queue) -> None:
    ended(queue, 0)
    ended(queue, 14)
    assert queue.call("archive_completed_messages", 0) == 0
    assert default_rows(queue) == 0


def stray(queue: Queue, back: int, count: int = 1) -> list[int]:
    """Messages that end after somebody has dropped the partition of their month by hand."""
    queue.one("select menzil._make_archive_month(menzil._month_of(now() - make_interval(months => %s)))", back)
    queue.conn.execute(f"drop table {month(queue, back)}")
    sent = [ended(queue, back) for _ in range(count)]
    assert {place(queue, message) for message in sent} == {"menzil.archive_default"}
    return sent


def test_leftovers_move_to_their_month(queue: Queue) -> None:
    sent = stray(queue, 14, 3)
    assert queue.call("archive_completed_messages") == 0, "they ended just now"
    assert queue.call("archive_completed_messages", 0) == 3
    assert {place(queue, message) for message in sent} == {month(queue, 14)}
    assert default_rows(queue) == 0
    assert queue.call("archive_completed_messages", 0) == 0
    assert place(queue, ended(queue, 14)) == month(queue, 14)


def test_leftovers_move_month_by_month(queue: Queue) -> None:
    stray(queue, 15, 2)
    stray(queue, 14, 2)
    assert queue.call("archive_completed_messages", 0, 1) == 2
    assert default_rows(queue) == 2
    assert queue.call("archive_completed_messages", 0, 1) == 2


def test_leftovers_wait_for_somebody_who_reads_them(queue: Queue, connect) -> None:
    stray(queue, 14)
    reader = Queue(connect(autocommit=False))
    assert reader.one("select count(*) from menzil.archive_default") == 1
    assert queue.call("archive_completed_messages", 0) == 0
    reader.conn.rollback()
    assert queue.call("archive_completed_messages", 0) == 1


@pytest.mark.parametrize(
    ("state", "params"),
    [("22004", [None]), ("22004", [0, None]), ("22023", [-1]), ("22023", [0, 0]), ("22023", [0, 1_000_001])],
)
def test_bad_calls_for_leftovers_are_refused(queue: Queue, state: str, params: list[int | None]) -> None:
    with pytest.raises(psycopg.Error) as refused:
        queue.call("archive_completed_messages", *params)
    assert refused.value.sqlstate == state


# --- old months -------------------------------------------------------------------------------------------------------


def test_months_older_than_the_retention_are_dropped(queue: Queue) -> None:
    kept, dropped = ended(queue, 6), [ended(queue, 7), ended(queue, 30)]
    assert queue.call("cleanup_old_archive_partitions") == 2
    assert [row[0] for row in queue.all("select id from menzil.archive")] == [kept]
    assert month(queue, 7) not in months(queue)
    assert month(queue, 6) in months(queue)
    assert queue.call("cleanup_old_archive_partitions") == 0
    with pytest.raises(psycopg.errors.UndefinedObject):
        queue.status(dropped[0])


@pytest.mark.parametrize(("given", "setting", "left"), [(1, "120", 1), (None, "2", 2), (120, "1", 4)])
def test_the_retention_is_given_or_the_setting(queue: Queue, given: int | None, setting: str, left: int) -> None:
    for back in (1, 2, 3, 4):
        ended(queue, back)
    queue.call("set_setting", "archive_retention_months", setting)
    assert queue.call("cleanup_old_archive_partitions", given) == 4 - left
    assert queue.one("select count(*) from menzil.archive") == left


def test_this_month_and_the_coming_ones_are_never_dropped(queue: Queue) -> None:
    before = months(queue)
    assert queue.call("cleanup_old_archive_partitions", 1) == 0
    assert months(queue) == before


def test_a_month_in_which_a_live_message_was_sent_is_kept_until_it_ends(queue: Queue) -> None:
    ended(queue, 8)
    ended(queue, 9)
    alive = queue.send()
    created_at(queue.conn, alive, queue.one("select now() - interval '8 months'"))
    assert queue.call("cleanup_old_archive_partitions") == 1
    assert month(queue, 8) in months(queue)
    assert month(queue, 9) not in months(queue)
    queue.call("message_cancel", alive)
    assert place(queue, alive) == month(queue, 8)
    assert queue.call("cleanup_old_archive_partitions") == 1


def test_a_dropped_month_can_be_made_again_and_goes_again(queue: Queue) -> None:
    ended(queue, 8)
    assert queue.call("cleanup_old_archive_partitions") == 1
    late = ended(queue, 8)
    assert place(queue, late) == month(queue, 8)
    assert queue.call("cleanup_old_archive_partitions") == 1


def test_each_dropped_month_is_an_event(queue: Queue) -> None:
    for back in (9, 8):
        ended(queue, back)
    queue.call("cleanup_old_archive_partitions")
    rows = events(queue, "archive.dropped")
    assert [(row.entity_type, f"menzil.{row.entity_id}") for row in rows] == [
        ("archive", month(queue, 9)),
        ("archive", month(queue, 8)),
    ]


def test_a_month_that_somebody_reads_is_dropped_next_time(queue: Queue, connect) -> None:
    for back in (7, 8, 9):
        ended(queue, back)
    reader = Queue(connect(autocommit=False))
    assert reader.one(f"select count(*) from {month(queue, 8)}") == 1
    assert queue.call("cleanup_old_archive_partitions") == 2
    assert month(queue, 8) in months(queue)
    assert queue.call("cleanup_old_archive_partitions") == 0
    reader.conn.rollback()
    assert queue.call("cleanup_old_archive_partitions") == 1


def test_an_open_send_or_reader_of_the_archive_keeps_everything_until_next_time(queue: Queue, connect) -> None:
    ended(queue, 8)
    slow = Queue(connect(autocommit=False))
    for use in (lambda: slow.call("send", "work", {}), lambda: slow.all("select * from menzil.archive")):
        use()
        assert queue.call("cleanup_old_archive_partitions") == 0
        slow.conn.commit()
    assert queue.call("cleanup_old_archive_partitions") == 1


def test_an_open_settle_is_kept_whether_a_month_goes_or_not(queue: Queue, connect) -> None:
    ended(queue, 8)
    queue.send()
    message = queue.lease()
    slow = Queue(connect(autocommit=False))
    slow.complete(message)
    dropped = queue.call("cleanup_old_archive_partitions")
    slow.conn.commit()
    assert dropped + queue.call("cleanup_old_archive_partitions") == 1
    assert queue.archived(message.id).status == "completed"


def test_a_settle_that_meets_a_drop_is_kept(queue: Queue, connect) -> None:
    ended(queue, 8)
    sent = queue.send()
    message = queue.lease()
    slow, other = Queue(connect(autocommit=False)), Queue(connect())
    assert slow.call("cleanup_old_archive_partitions") == 1
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(other.complete, message)  # waits for the commit, or not: PostgreSQL decides
        wait([answer], 0.2)
        slow.conn.commit()
        assert answer.result(60) == {sent: "settled"}
    assert queue.archived(sent).status == "completed"


def test_a_cleanup_that_is_left_open_is_the_only_thing_that_stops_senders(queue: Queue, connect) -> None:
    """PostgreSQL drops a partition under a lock of the whole table; the transaction must be short, and the job's is."""
    ended(queue, 8)
    slow, other = Queue(connect(autocommit=False)), Queue(connect())
    assert slow.call("cleanup_old_archive_partitions", 120) == 0  # nothing is old: nothing is locked
    other.conn.execute("set lock_timeout = '20s'")
    other.send()
    slow.conn.rollback()
    assert queue.call("job_run", "retention") == 1
    assert queue.one("select last_error from menzil.jobs where name = 'retention'") is None


def test_months_that_are_made_in_an_open_transaction_let_plain_messages_through(queue: Queue, connect) -> None:
    queue.send()
    queue.complete(queue.lease())
    slow, other = Queue(connect(autocommit=False)), Queue(connect())
    assert slow.call("maintain_archive_partitions", 8) == 5
    other.conn.execute("set lock_timeout = '20s'")
    sent = other.call("send", "work", {})
    message = other.lease()
    assert (message.id, other.complete(message)) == (sent, {sent: "settled"})
    slow.conn.commit()


def test_the_feed_is_told_where_a_dropped_month_ended(queue: Queue) -> None:
    ended(queue, 9)
    last = ended(queue, 8)
    kept = ended(queue, 0)
    xid = "select ended_xid::text from menzil.archive where id = %s"
    place_of_last, place_of_kept = queue.one(xid, last), queue.one(xid, kept)
    assert queue.call("cleanup_old_archive_partitions") == 2
    drops = "select xid::text, row_id from menzil.feed_drop where feed = 'archive'"
    assert queue.all(drops) == [(place_of_last, last)]
    assert queue.call("feed_lost", "archive", place_of_last, last, 0) is None
    assert int(place_of_kept) > int(place_of_last)


def test_two_cleanups_at_the_same_time_do_not_meet(queue: Queue, connect) -> None:
    ended(queue, 8)
    slow = Queue(connect(autocommit=False))
    assert slow.call("cleanup_old_archive_partitions") == 1
    queue.conn.execute("set lock_timeout = '20s'")
    assert queue.call("cleanup_old_archive_partitions") == 0
    slow.conn.rollback()
    assert queue.call("cleanup_old_archive_partitions") == 1


def test_a_month_whose_partition_is_gone_already_is_forgotten(queue: Queue) -> None:
    ended(queue, 8)
    queue.conn.execute(f"drop table {month(queue, 8)}")
    assert queue.call("cleanup_old_archive_partitions") == 0
    assert place(queue, ended(queue, 8)) == month(queue, 8)


@pytest.mark.parametrize("given", [0, -1, 121])
def test_a_retention_out_of_range_is_refused(queue: Queue, given: int) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        queue.call("cleanup_old_archive_partitions", given)


# --- tries and events -------------------------------------------------------------------------------------------------


def test_old_tries_go_unless_their_message_lives_or_is_a_dead_letter(queue: Queue) -> None:
    ended_, alive, young = queue.send_batch("work", 3)
    for message in queue.dequeue(3):
        queue.fail(message, retry_after="0")
    queue.complete(*(message for message in queue.dequeue(3) if message.id != alive))
    dead = die(queue)
    queue.conn.execute(
        "update menzil.attempt set ended_at = ended_at - interval '8 months' where message_id <> %s", [young]
    )
    assert queue.call("cleanup_attempts") == 1
    left = queue.all("select message_id from menzil.attempt order by message_id")
    assert [row[0] for row in left] == [alive, young, dead]
    assert ended_ not in left


def test_tries_are_kept_as_long_as_the_archive_and_no_more_go_than_asked(queue: Queue) -> None:
    queue.send_batch("work", 3)
    for message in queue.dequeue(3):
        queue.fail(message, retry_after="0")
    queue.complete(*queue.dequeue(3))
    queue.conn.execute("update menzil.attempt set ended_at = ended_at - interval '6 months'")
    assert queue.call("cleanup_attempts") == 0
    queue.call("set_setting", "archive_retention_months", "5")
    assert queue.call("cleanup_attempts", 2) == 2
    assert queue.call("cleanup_attempts", 2) == 1


def test_old_lines_of_the_event_log_go(queue: Queue) -> None:
    queue.call("channel_pause", "work")
    queue.call("channel_resume", "work")
    queue.conn.execute(
        "update menzil.event set created_at = created_at - interval '91 days' where event_type <> 'channel.resumed'"
    )
    assert queue.call("cleanup_event_log", 1) == 1
    assert queue.call("cleanup_event_log") == 1
    assert [row[0] for row in queue.all("select event_type from menzil.event_log")] == ["channel.resumed"]
    queue.conn.execute("update menzil.event set created_at = created_at - interval '2 days'")
    assert queue.call("cleanup_event_log") == 0
    queue.call("set_setting", "event_log_retention_days", "1")
    assert queue.call("cleanup_event_log") == 1


def test_a_janitor_finds_what_is_old_without_reading_everything(queue: Queue) -> None:
    queue.conn.execute("set enable_seqscan = off")
    for table, column in (("attempt", "ended_at"), ("event", "created_at"), ("dead_letter", "failed_at")):
        rows = queue.all(f"explain select ctid from menzil.{table} where {column} < '2020-01-01' limit 10")
        assert "Seq Scan" not in "\n".join(row[0] for row in rows), table


def test_every_month_has_a_dense_index_by_id(queue: Queue) -> None:
    """A partitioned index hands no setting down: the migration and the function that makes months give it to each."""
    queue.one("select menzil._make_archive_month(timestamptz '2031-05-01 00:00+00')")
    found = queue.all(
        "select c.relname, c.reloptions from pg_partition_tree('menzil.message_by_id') t"
        " join pg_class c on c.oid = t.relid where t.isleaf"
    )
    assert {"archive_default_id_idx", "archive_2031_05_id_idx"} <= {row.relname for row in found}
    assert [row.relname for row in found if row.reloptions != ["fillfactor=97"]] == []
