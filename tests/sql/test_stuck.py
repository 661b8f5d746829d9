"""One message that cannot be moved keeps nobody else: sweeps go on around it and say so once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import pass_time
from tests.sql.queue import Queue

SOON = (datetime.now(UTC) + timedelta(hours=1)).isoformat()


@pytest.fixture
def hostile(queue: Queue) -> Iterator[Queue]:
    """A table of ends that takes every message but the bad ones, as an administrator's own trigger might."""
    queue.conn.execute("""
        create function pg_temp.refuse() returns trigger language plpgsql as
          $$ begin raise exception 'not this one'; end $$;
        create function pg_temp.is_bad(p_end menzil.done) returns boolean language sql as $$
          select exists (select 1 from menzil.message m where m.payload ? 'bad'
                            and m.id between p_end.lo_id and p_end.hi_id
                            and (p_end.ids is null or m.id = any (p_end.ids))) $$;
        create trigger hostile before insert on menzil.done for each row
          when (pg_temp.is_bad(new)) execute function pg_temp.refuse()""")
    queue.call("channel_set", "work")
    yield queue
    queue.conn.execute("drop trigger hostile on menzil.done; drop function pg_temp.is_bad")


def stuck(queue: Queue) -> list[str]:
    return [row.entity_id for row in queue.all("select * from menzil.event_log where event_type = 'message.stuck'")]


def test_an_expired_message_that_cannot_end_lets_the_others_expire(hostile: Queue) -> None:
    ids = [hostile.send(payload={"bad": 1} if n == 2 else {}, expires_at="2099-01-01+00") for n in range(5)]
    pass_time(hostile.conn, 3_000_000_000)
    assert hostile.call("mark_expired_messages") == 4
    assert hostile.call("mark_expired_messages") == 0
    assert stuck(hostile) == [str(ids[2])]
    assert hostile.status(ids[2]).status == "pending"


def test_an_expired_message_that_cannot_end_fails_no_dequeue(hostile: Queue) -> None:
    bad = hostile.send(payload={"bad": 1}, expires_at="2099-01-01+00")
    pass_time(hostile.conn, 3_000_000_000)
    good = hostile.send()
    assert [message.id for message in hostile.dequeue(10)] == [good]
    assert hostile.dequeue(10) == []
    assert stuck(hostile) == [str(bad)]


def test_one_of_many_that_expired_together_cannot_end_and_the_others_do(hostile: Queue) -> None:
    """A dequeue holds its lane meanwhile: it finds the bad one by halves and does not try anew for each other one."""
    hostile.conn.execute("""
        create temp sequence tries;
        create or replace function pg_temp.refuse() returns trigger language plpgsql as
          $$ begin raise exception 'not this one, at try %', nextval('pg_temp.tries'); end $$""")
    bodies = [{"endpoint": "work", "payload": {"bad": 1} if n == 150 else {}, "expires_at": SOON} for n in range(200)]
    ids = hostile.one("select menzil.send_many(%s)", Jsonb(bodies))
    pass_time(hostile.conn, 4000)
    assert hostile.dequeue(1) == []
    assert hostile.all("select id from menzil.queue") == [(ids[150],)]
    assert stuck(hostile) == [str(ids[150])]
    assert hostile.one("select last_value from pg_temp.tries") < 20


@pytest.fixture
def shortening(queue: Queue) -> Iterator[Queue]:
    """A run of two messages that expired and two that did not, and a table of runs in which none becomes shorter."""
    bodies = [{"endpoint": "work", "payload": {}, "expires_at": SOON if n < 2 else None} for n in range(4)]
    queue.call("channel_set", "work")
    queue.one("select menzil.send_many(%s)", Jsonb(bodies))
    pass_time(queue.conn, 4000)
    queue.conn.execute("""
        create function pg_temp.refuse() returns trigger language plpgsql as
          $$ begin raise exception 'no run becomes shorter' using errcode = current_setting('test.code'); end $$;
        create trigger hostile before update on menzil.run for each row execute function pg_temp.refuse()""")
    yield queue
    queue.conn.execute("drop trigger hostile on menzil.run")


def test_what_ends_expired_messages_together_says_when_it_cannot(shortening: Queue) -> None:
    """A visit ends expired messages one by one all the same: without a word no operator would see the error."""
    shortening.conn.execute("set test.code = 'XX000'")
    first, second, good, last = [id for (id,) in shortening.all("select id from menzil.queue order by id")]
    assert [message.id for message in shortening.dequeue(1)] == [good]
    assert [shortening.status(id).status for id in (first, second, last)] == ["expired", "expired", "pending"]
    told = shortening.all("select entity_id, metadata from menzil.event_log where event_type = 'message.stuck'")
    assert told == [(str(second), {"error": "no run becomes shorter"})]


@pytest.mark.parametrize("code", ["40P01", "55P03"])
def test_the_trouble_of_a_moment_is_not_told(shortening: Queue, code: str) -> None:
    shortening.conn.execute(f"set test.code = '{code}'")
    assert len(shortening.dequeue(1)) == 1
    assert stuck(shortening) == []


def test_a_dequeue_is_cancelled_also_while_it_ends_expired_messages(shortening: Queue) -> None:
    shortening.conn.execute("set test.code = '57014'")
    with pytest.raises(psycopg.errors.QueryCanceled, match="no run becomes shorter"):
        shortening.dequeue(1)


def test_a_lost_lease_that_cannot_be_buried_lets_the_others_come_back(hostile: Queue) -> None:
    hostile.call("set_retry_policy", "work", {"max_retries": 0})
    ids = [hostile.send(payload={"bad": 1} if n == 1 else {}) for n in range(4)]
    hostile.dequeue(4, lock_ms=1000)
    pass_time(hostile.conn, 2)
    assert hostile.call("recover_stale_messages") == 3
    assert stuck(hostile) == [str(ids[1])]
    assert [row.original_message_id for row in hostile.all("select * from menzil.dlq order by 2")] == ids[:1] + ids[2:]
    # It stays in flight and is tried again later.
    assert hostile.status(ids[1]).status == "processing"
    hostile.conn.execute("alter table menzil.done disable trigger hostile")
    pass_time(hostile.conn, 301)
    assert hostile.call("recover_stale_messages") == 1


@pytest.fixture
def full(hostile: Queue) -> Queue:
    """A disk that is full for a moment."""
    hostile.conn.execute("""
        create or replace function pg_temp.refuse() returns trigger language plpgsql as
          $$ begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$""")
    return hostile


def test_a_lost_lease_that_met_a_full_disk_comes_back_when_there_is_room_again(full: Queue) -> None:
    full.call("set_retry_policy", "work", {"max_retries": 0})
    lost = full.send(payload={"bad": 1})
    full.dequeue(1, lock_ms=1000)
    pass_time(full.conn, 2)
    assert full.call("recover_stale_messages") == 0
    full.conn.execute("alter table menzil.done disable trigger hostile")
    pass_time(full.conn, 2)
    assert full.call("recover_stale_messages") == 1
    assert full.status(lost).status == "failed"
    assert stuck(full) == []


def test_an_expired_message_that_met_a_full_disk_ends_when_there_is_room_again(full: Queue) -> None:
    late = full.send(payload={"bad": 1}, expires_at="2099-01-01+00")
    pass_time(full.conn, 3_000_000_000)
    assert full.dequeue(10) == []
    full.conn.execute("alter table menzil.done disable trigger hostile")
    pass_time(full.conn, 2)
    assert full.dequeue(10) == []
    assert full.status(late).status == "expired"
    assert stuck(full) == []
