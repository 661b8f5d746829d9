"""A correlation id finds its messages at any moment: before, while and after the job lookups writes them down."""

from __future__ import annotations

from uuid import UUID, uuid4

import psycopg
import pytest

from tests.sql.queue import Queue

CORR = UUID("6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11")


def found(queue: Queue, corr: UUID = CORR, **given: object) -> list[int]:
    return [row.id for row in queue.rows("messages_with_correlation", corr, **given)]


def write(queue: Queue) -> None:
    queue.call("job_run", "lookups")
    assert queue.one("select last_error from menzil.jobs where name = 'lookups'") is None


def written(queue: Queue) -> list[int]:
    return [row[0] for row in queue.all("select message_id from menzil.correlated order by 1")]


def gaps(queue: Queue) -> str:
    return queue.one("select gaps::text from menzil.lookup_state")


def test_a_message_is_found_at_once_and_by_its_own_open_transaction(queue: Queue, connect) -> None:
    open_one = Queue(connect(autocommit=False))
    sent = open_one.send(correlation_id=CORR)
    assert found(open_one) == [sent]
    assert found(queue) == []
    write(queue)
    assert found(open_one) == [sent], "the job has passed it"
    open_one.conn.commit()
    assert found(queue) == [sent]
    assert written(queue) == []
    write(queue)
    assert (found(queue), written(queue), gaps(queue)) == ([sent], [sent], "{}")


def test_newest_first_page_by_page_live_and_ended(queue: Queue) -> None:
    sent = [queue.send(correlation_id=CORR) for _ in range(6)]
    queue.send(correlation_id=uuid4())
    queue.complete(*queue.dequeue(3))
    write(queue)
    sent += [queue.send(correlation_id=CORR) for _ in range(3)]
    newest = sent[::-1]
    assert found(queue) == newest
    assert found(queue, p_limit=4) == newest[:4]
    assert found(queue, p_before=newest[3], p_limit=4) == newest[4:8]
    assert found(queue, uuid4()) == []


def test_an_older_snapshot_finds_what_it_shows(queue: Queue, connect) -> None:
    first = queue.send(correlation_id=CORR)
    reader = Queue(connect(autocommit=False))
    reader.conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    assert found(reader) == [first]
    second = queue.send(correlation_id=CORR)
    write(queue)
    assert (found(reader), found(queue)) == ([first], [second, first])


def test_a_late_commit_is_written_once_and_a_rollback_leaves_no_gap(queue: Queue, connect) -> None:
    late, gone = Queue(connect(autocommit=False)), Queue(connect(autocommit=False))
    first, lost = late.send(correlation_id=CORR), gone.send(correlation_id=CORR)
    last = queue.send(correlation_id=CORR)
    write(queue)
    assert (written(queue), gaps(queue)) == ([last], f"{{[{first},{lost + 1})}}")
    gone.conn.rollback()
    write(queue)
    assert gaps(queue) == f"{{[{first},{lost + 1})}}", "a sender is open"
    late.conn.commit()
    assert found(queue) == [last, first]
    for _ in range(2):
        write(queue)
        assert (found(queue), written(queue), gaps(queue)) == ([last, first], [first, last], "{}")


def test_gaps_end_also_while_there_is_always_a_sender(queue: Queue, connect) -> None:
    one, other = Queue(connect(autocommit=False)), Queue(connect(autocommit=False))
    first = one.send(correlation_id=CORR)
    queue.send()
    write(queue)
    other.send()
    write(queue)
    one.conn.rollback()
    write(queue)
    assert not queue.one("select gaps @> %s::bigint from menzil.lookup_state", first)
    assert found(queue) == []


def test_a_round_that_meets_its_limit_goes_on(queue: Queue) -> None:
    sent = [queue.send(correlation_id=CORR) for _ in range(5)]
    assert queue.one("select menzil._write_lookups(2)") >= 1000
    assert written(queue) == sent[:2]
    assert found(queue) == sent[::-1]
    while queue.one("select menzil._write_lookups(2)") >= 1000:
        pass
    assert written(queue) == sent


def test_a_dump_without_rows_begins_anew(queue: Queue) -> None:
    sent = queue.send(correlation_id=CORR)
    queue.conn.execute("delete from menzil.lookup_state")
    assert found(queue) == [sent]
    write(queue)
    write(queue)
    assert (found(queue), written(queue)) == ([sent], [sent])


def test_rows_of_messages_that_are_gone_are_ignored_and_deleted(queue: Queue) -> None:
    sent = [queue.send(correlation_id=CORR) for _ in range(4)]
    write(queue)
    queue.conn.execute("delete from menzil.message where id = any (%s)", ([sent[0], sent[3]],))
    assert found(queue, p_limit=2) == [sent[2], sent[1]]
    assert [queue.one("select menzil._cleanup_lookups(1)") for _ in range(2)] == [2, 0]
    assert written(queue) == sent[1:3]


def pages(queue: Queue, table: str) -> int:
    return queue.one(
        "select pg_relation_size(%s::text::regclass) / current_setting('block_size')::int", f"menzil.{table}"
    )


def test_the_clean_up_walks_over_all_pages_and_begins_again(queue: Queue) -> None:
    queue.conn.execute("insert into menzil.correlated select -n, %s from generate_series(1, 1000) n", (CORR,))
    queue.conn.execute("insert into menzil.lineage values (-1, -2)")
    longest = max(pages(queue, "correlated"), pages(queue, "lineage"))
    assert longest > 3
    rounds = [queue.one("select menzil._cleanup_lookups(2)") for _ in range(longest)]
    assert sum(rounds) == 1001
    assert max(rounds) < 1000
    queue.conn.execute("insert into menzil.lineage values (-1, -2)")
    longest = max(pages(queue, "correlated"), pages(queue, "lineage"))
    assert sum(queue.one("select menzil._cleanup_lookups(1)") for _ in range(2 * longest)) == 1


def test_parents_from_before_are_written_once(queue: Queue) -> None:
    """A database of the schema before: redrives and replays had an index of message, and wrote nothing beside it."""
    old = queue.send()
    queue.complete(queue.lease())
    again = queue.call("replay_message", old)
    queue.conn.execute("delete from menzil.lineage")
    queue.conn.execute("update menzil.lookup_state set told_from = %s", (again,))
    later = queue.call("replay_message", old)
    for _ in range(2):
        write(queue)
        children = [row.message_id for row in queue.rows("message_family", old) if row.depth == 1]
        assert children == [again, later]
        assert queue.one("select count(*) from menzil.lineage") == 2


@pytest.mark.parametrize("call", ["null", f"'{CORR}', null, null"])
def test_nothing_to_look_for_is_refused(queue: Queue, call: str) -> None:
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        queue.conn.execute(f"select menzil.messages_with_correlation({call})")
