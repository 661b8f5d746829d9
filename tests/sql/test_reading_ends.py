"""Readers of many ended messages give what menzil.archive gives, however the messages ended."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import created_at
from tests.sql.queue import Queue

COLUMNS = "select attname from pg_attribute where attrelid = 'menzil.archive'::regclass and attnum > 0 order by attnum"


def rows(queue: Queue, source: str, *params: Any) -> Counter[Any]:
    """The rows of a source as texts, in the columns of the archive."""
    texts = ", ".join(f"{name}::text" for (name,) in queue.all(COLUMNS))
    return Counter(tuple(row) for row in queue.all(f"select {texts} from {source}", *params))


def settle(queue: Queue, taken: list[Any], dice: random.Random) -> None:
    """Batches, gaps, singles, with and without responses; failures, dead letters, deferrals."""
    while taken:
        size = dice.choice([1, 3, 20])
        part, taken = taken[:size], taken[size:]
        ids, attempts = [message.id for message in part], [message.num_attempts for message in part]
        kind = dice.random()
        if kind < 0.5:
            queue.all("select * from menzil.message_complete(%s::bigint[], %s::bigint[])", ids, attempts)
        elif kind < 0.75:
            responses = [Jsonb({"status": 200, "n": id}) if id % 2 else None for id in ids]
            query = "select * from menzil.message_complete(%s::bigint[], %s::bigint[], %s::jsonb[])"
            queue.all(query, ids, attempts, responses)
        else:
            for message in part:
                if kind < 0.9:
                    queue.fail(message, dice.choice(["[RETRYABLE] later", "[PERMANENT] never"]), "0")
                else:
                    queue.defer(message, state=b"half")


def history(queue: Queue, seed: int) -> None:
    """Ended messages of two months and three channels, and a few that live."""
    dice = random.Random(seed)
    queue.call("_make_archive_month", queue.one("select menzil._month_of(now() - interval '2 months')"))
    for n in range(300):
        sent = queue.send(dice.choice(["work", "other", "third"]), {"n": n}, priority=dice.choice([0, 0, 5]))
        if dice.random() < 0.1:
            queue.call("message_cancel", sent)
        elif dice.random() < 0.2:
            created_at(queue.conn, sent, queue.one("select now() - interval '2 months'"))
    for _ in range(12):
        taken = queue.dequeue(60)
        dice.shuffle(taken)
        settle(queue, sorted(taken[:50], key=lambda message: message.id), dice)


@pytest.fixture
def used(queue: Queue) -> Queue:
    for name in ("other", "third"):
        queue.call("channel_set", name)
    history(queue, 7)
    return queue


def test_each_reader_of_ends_has_every_row_of_the_archive_once(used: Queue) -> None:
    wanted = rows(used, "menzil.archive")
    assert sum(wanted.values()) > 150
    assert used.one("select count(*) filter (where ids is not null) > 0 and count(responses) > 0 from menzil.done")
    assert used.one("select count(*) > 10 from menzil.archive where num_attempts > 1")
    for source in ("menzil._ended", "menzil._ended_singly"):
        assert rows(used, source) == wanted, source
    assert rows(used, "menzil.archive_between('-infinity', 'infinity')") == wanted
    assert rows(used, "menzil.feed_between('0', '18446744073709551615')") == wanted
    ids = used.all("select ended_xid::text, id from menzil._ends e order by e.ended_xid, id")
    assert ids == used.all("select ended_xid::text, id from menzil.archive e order by e.ended_xid, id")
    fed = used.all("select ended_xid::text, id from menzil.feed_between('0', '18446744073709551615')")
    assert fed == ids


@pytest.mark.parametrize("channel", [None, "other"])
def test_parts_of_the_archive_are_exact(used: Queue, channel: str | None) -> None:
    used.conn.execute("analyze menzil.message")
    where = "created_at >= %s and created_at < %s and channel = coalesce(%s, channel)"
    month = used.one("select menzil._month_of(now())")
    middle = used.one("select percentile_disc(0.5) within group (order by created_at) from menzil.archive")
    for bounds in (("-infinity", month), (month, middle), (middle, "infinity"), (middle, middle)):
        wanted = rows(used, f"menzil.archive where {where}", *bounds, channel)
        assert rows(used, "menzil.archive_between(%s, %s, %s)", *bounds, channel) == wanted, bounds


def test_parts_of_the_feed_meet_and_none_is_missing(used: Queue) -> None:
    (first,), *_, (last,) = used.all("select distinct ended_xid from menzil.archive order by 1")
    middle = str((int(first) + int(last)) // 2)
    parts = [rows(used, "menzil.feed_between(%s, %s)", *each) for each in (("0", middle), (middle, str(int(last) + 1)))]
    assert all(parts)
    assert parts[0] + parts[1] == rows(used, "menzil.archive")
    assert rows(used, "menzil.feed_between(%s, %s)", str(int(last) + 1), "18446744073709551615") == Counter()


@pytest.mark.parametrize("size", [1, 100])
def test_messages_that_ended_one_by_one_and_together_are_read_alike(queue: Queue, size: int) -> None:
    queue.send_batch("work", 300)
    for _ in range(300 // size):
        queue.complete(*queue.dequeue(size))
    (layout,) = queue.rows("archive_layout")
    assert (layout.first_id, layout.last_id, layout.ended_together) == (1, 300, size > 1)
    assert layout.blocks > 0
    wanted = rows(queue, "menzil.archive")
    assert sum(wanted.values()) == 300
    assert rows(queue, "menzil.archive_between(now() - interval '1 day', now() + interval '1 day')") == wanted
    assert rows(queue, "menzil.feed_between('0', '18446744073709551615')") == wanted


#: With responses: without a gap, with few, far apart.
APART = ([*range(1, 41)], [*range(41, 81, 2)], [42, 90, 150])


def test_messages_with_responses_are_read_alike_however_far_apart_their_ids_lie(queue: Queue) -> None:
    queue.send_batch("work", 150)
    assert len(queue.dequeue(150)) == 150
    complete = "select * from menzil.message_complete(%s::bigint[], %s::bigint[], %s::jsonb[])"
    for ids in APART:
        queue.all(complete, ids, [1] * len(ids), [Jsonb({"status": 200, "n": id}) if id % 4 else None for id in ids])
    rest = sorted(set(range(1, 151)) - {id for ids in APART for id in ids})
    queue.all("select * from menzil.message_complete(%s::bigint[], %s::bigint[])", rest, [1] * len(rest))
    kinds = "ids is null as whole, responses is null as bare, hi_id - lo_id < 4 * n as near"
    found = queue.all(f"select {kinds} from menzil.done order by lo_id")
    assert found == [(True, False, True), (False, False, True), (False, False, False), (False, True, True)]
    wanted = rows(queue, "menzil.archive")
    assert sum(wanted.values()) == 150
    for source in ("menzil._ended", "menzil._ended_singly", "menzil.archive_between('-infinity', 'infinity')"):
        assert rows(queue, source) == wanted, source

    # One look at the messages for each end whose ids lie close together.
    ((plan,),) = queue.all("explain (analyze, timing off, format json) select * from menzil._ended_with_responses")
    assert plan[0]["Plan"]["Actual Rows"] == 60
    assert looks(plan[0]["Plan"]) == 2


def looks(plan: dict[str, Any]) -> int:
    """How often months that have messages were looked into."""
    here = plan["Actual Loops"] if plan.get("Relation Name", "").startswith("archive_") and plan["Actual Rows"] else 0
    return int(here) + sum(map(looks, plan.get("Plans", [])))


def test_the_feed_of_plain_ends_is_in_order(queue: Queue) -> None:
    for name in ("b", "c"):
        queue.call("channel_set", name)
    queue.call("_make_archive_month", queue.one("select menzil._month_of(now() - interval '2 months')"))
    queue.send_batch("work", 60)
    for sent in (15, 31, 40):
        created_at(queue.conn, sent, queue.one("select now() - interval '2 months'"))
    taken = queue.dequeue(60)
    complete = "select count(*) from menzil.message_complete(%s::bigint[], %s::bigint[])"
    with queue.conn.transaction():  # the ends of one transaction are written in another order than their ids
        for part in ((30, 60), (0, 30)):
            ids = list(range(part[0] + 1, part[1] + 1))
            queue.one(complete, ids, [1] * len(ids))
    assert len(taken) == 60
    assert queue.all("select lo_id, ids is null from menzil.done order by ctid") == [(31, True), (1, True)]
    # As if one lease had had messages of three channels.
    queue.conn.execute(
        "update menzil.message m set channel_id = c.id from menzil.channel c "
        "where c.name = (array['work', 'b', 'c'])[1 + m.id / 7 % 3]"
    )
    fed = queue.all("select id from menzil.feed_between('0', '18446744073709551615')")
    assert [row.id for row in fed] == list(range(1, 61))
    assert rows(queue, "menzil.feed_between('0', '18446744073709551615')") == rows(queue, "menzil.archive")


def test_a_month_is_read_without_a_copy_of_its_rows(queue: Queue) -> None:
    plan = queue.all("explain select * from menzil.archive_between(now() - interval '1 month', now())")
    assert not any("Function Scan on archive_between" in line for (line,) in plan)


def test_settings_of_the_caller_come_back_after_a_read(queue: Queue) -> None:
    queue.send_batch("work", 20)
    for _ in range(20):
        queue.complete(queue.lease())
    queue.all("select id from menzil.archive_between('-infinity', 'infinity')")
    queue.all("select id from menzil.feed_between('0', '18446744073709551615')")
    assert queue.one("show enable_nestloop") == "on"


@pytest.mark.parametrize(
    ("state", "call"),
    [
        ("22004", "archive_between(null, now())"),
        ("22004", "archive_between(now(), null)"),
        ("42704", "archive_between(now(), now(), 'nobody')"),
        ("22004", "feed_between(null, '1')"),
        ("22023", "feed_between('1', 'x')"),
    ],
)
def test_a_bad_call_is_refused(queue: Queue, state: str, call: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        queue.all(f"select * from menzil.{call}")
    assert refused.value.sqlstate == state
    assert refused.value.diag.message_hint


def test_the_reader_of_the_pipeline_may_use_them_and_the_tables_stay_closed(queue: Queue, connect) -> None:
    queue.send()
    queue.complete(queue.lease())
    reader = Queue(connect())
    reader.conn.execute("set role menzil_pipeline")
    for source in ("archive_between('-infinity', 'infinity')", "feed_between('0', '18446744073709551615')", "_ended"):
        assert reader.one(f"select id from menzil.{source}") == 1
    assert reader.one("select count(*) from menzil.archive_layout()") == 1
    for table in ("message", "done", "returned"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.all(f"select * from menzil.{table}")
