"""rebuild() gives every live message its place again, also if the tables of places are empty or wrong."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, ids

PLACES = ("run", "line", "aside", "lane", "lane_name", "rank_used", "look")


def lose_places(queue: Queue, *tables: str) -> None:
    for table in tables or PLACES:
        queue.conn.execute(f"delete from menzil.{table}")


def live(queue: Queue) -> list[Any]:
    return queue.all("select id, status from menzil.queue order by id")


def drain(queue: Queue, count: int) -> list[int]:
    done: list[int] = []
    until(lambda: done.extend(queue.complete(*queue.dequeue(10))) or len(done) >= count)
    assert queue.dequeue(10) == []
    return done


def mixed(queue: Queue) -> None:
    """A queue with a message in every state there is."""
    queue.call("channel_set", "narrow", 2, 100)
    queue.call("channel_set", "strict", p_on_dead="block")
    queue.send_batch("work", 20)
    for n in range(12):
        queue.send("work", ordering_key=f"k{n % 3}", priority=n % 2)
        queue.send("narrow", expires_at="2099-01-01", priority=n % 4)
        queue.send("strict", ordering_key="one")
    queue.fail(queue.lease(["strict"]), "[PERMANENT] no")
    for message in queue.dequeue(12, ["work"]):
        if message.id % 3 == 0:
            queue.complete(message)
        elif message.id % 3 == 1:
            queue.fail(message, retry_after="0" if message.id % 2 else "1 hour")
    queue.dequeue(2, ["narrow"])
    queue.send("work", scheduled_at="2099-01-01")
    queue.send("work", scheduled_at="2020-01-01")
    queue.call("message_cancel", queue.send("work"))
    queue.send_batch("work", 5)


def test_rebuilding_a_sound_queue_changes_nothing_that_a_user_sees(queue: Queue) -> None:
    mixed(queue)
    before = live(queue)
    order = {name: ids(queue.rows("message_peek", name, 100)) for name in ("work", "narrow", "strict")}
    placed = queue.call("rebuild")
    assert live(queue) == before
    assert {name: ids(queue.rows("message_peek", name, 100)) for name in order} == order
    in_place = "select sum(coalesce(cardinality(l.ids), l.hi_id - l.lo_id + 1)) from menzil.lease l"
    assert placed == len(before) - queue.one(in_place) - queue.one("select count(*) from menzil.scheduled")
    assert [row.status for row in queue.rows("health_check") if row.check_name == "places"] == ["ok"]


@pytest.mark.parametrize("lost", [PLACES, (*PLACES, "key_queue", "scheduled", "expiring"), ("lane",), ("run", "line")])
def test_a_queue_that_lost_its_places_drains_after_a_rebuild(queue: Queue, lost: tuple[str, ...]) -> None:
    mixed(queue)
    before = live(queue)
    lose_places(queue, *lost)
    queue.call("rebuild")
    assert live(queue) == before
    queue.conn.execute("update menzil.dead_letter set blocks_key = false")
    queue.all("select menzil._free_keys(array(select original_message_id from menzil.dead_letter))")
    pass_time(queue.conn, 7200)
    # The ones for 2099 are left.
    left = queue.one("select count(*) from menzil.queue where scheduled_at > now()")
    assert sorted(drain(queue, len(before) - left)) == [row.id for row in before if row.id not in queue.waiting()]
    assert queue.one("select coalesce(max(in_flight), 0) from menzil.gate") == 0
    assert queue.one("select coalesce(sum(change), 0) from menzil.size_change") == 0


def test_places_without_a_body_hold_nothing_after_a_rebuild(queue: Queue) -> None:
    """What a dump without the data of the months brings: leases, runs and keys of messages whose bodies are missing."""
    queue.call("channel_set", "narrow", 2)
    for _ in range(6):
        queue.send("work", ordering_key="k")
        queue.send("narrow")
        queue.send("work", scheduled_at="2099-01-01", expires_at="2099-01-02")
    assert queue.dequeue(4)
    queue.send_batch("work", 5)
    queue.conn.execute("delete from menzil.message")
    new = [queue.send("work", ordering_key="k"), queue.send("narrow"), queue.send("work")]
    assert queue.call("rebuild") == len(new)
    assert sorted(drain(queue, len(new))) == sorted(new)
    for table in ("lease", "run", "line", "scheduled", "key_queue", "expiring"):
        assert queue.one(f"select count(*) from menzil.{table}") == 0, table


def test_what_is_in_flight_stays_with_its_worker_and_is_counted(queue: Queue) -> None:
    queue.call("channel_set", "narrow", 2)
    queue.send_batch("narrow", 4)
    taken = queue.dequeue(2)
    queue.conn.execute("update menzil.gate set in_flight = 77")
    assert queue.call("rebuild") == 2
    assert queue.dequeue(5) == []
    assert set(queue.complete(*taken).values()) == {"settled"}
    until(lambda: len(queue.complete(*queue.dequeue(5))) == 2)


def test_an_ordering_key_keeps_its_head_and_its_order(queue: Queue) -> None:
    sent = [queue.send(ordering_key="k") for _ in range(6)]
    head = queue.lease()
    lose_places(queue)
    queue.call("rebuild")
    assert queue.dequeue(5) == [], "the first is in flight"
    queue.fail(head, retry_after="0")
    got = []
    for _ in sent:
        message = until(lambda: queue.dequeue(5))
        got += ids(message)
        queue.call("rebuild")
        queue.complete(*message)
    assert got == sent


def test_a_head_that_came_back_stays_the_head(queue: Queue) -> None:
    early = queue.send(ordering_key="k", scheduled_at=queue.one("select now() + interval '60 seconds'"))
    head = queue.send(ordering_key="k")
    queue.fail(queue.lease(), retry_after="0")
    pass_time(queue.conn, 120)
    queue.call("maintain")
    queue.call("rebuild")
    message = queue.lease()
    assert message.id == head
    queue.complete(message)
    assert until(lambda: ids(queue.dequeue())) == [early]


def test_a_message_whose_retry_was_lost_waits_for_its_time(queue: Queue) -> None:
    later = queue.send()
    queue.fail(queue.lease(), retry_after="1 hour")
    lose_places(queue, "scheduled")
    assert queue.call("rebuild") == 1
    assert queue.dequeue() == []
    pass_time(queue.conn, 3601)
    assert until(lambda: ids(queue.dequeue())) == [later]


def test_a_circuit_whose_probe_is_gone_sends_another(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    queue.send("hook")
    queue.conn.execute("update menzil.gate set circuit = 1, probe_at = now(), opened_at = now() - interval '1 minute'")
    lose_places(queue)
    queue.call("rebuild")
    assert queue.lease().channel == "hook"


def test_news_of_an_endpoint_that_was_not_folded_is_kept(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    queue.send("hook")
    queue.fail(queue.lease(), retry_after="1 hour")
    queue.call("rebuild")
    assert queue.one("select circuit_failure_count from menzil.get_endpoint_health('hook')") == 1


def test_ids_go_on_above_every_id_there_is(queue: Queue) -> None:
    sent = queue.send_batch("work", 3)
    queue.complete(*queue.dequeue(3))
    queue.conn.execute("select setval('menzil.message_id', 1), setval('menzil.ended_count', 0)")
    queue.call("rebuild")
    assert queue.send() > max(sent)


def test_a_transaction_that_is_sending_is_waited_for(queue: Queue, connect) -> None:
    slow = Queue(connect(autocommit=False))
    sent = [queue.send(), slow.send()]
    timer = threading.Timer(0.5, slow.conn.commit)
    timer.start()
    assert queue.call("rebuild") == 2
    timer.join()
    assert sorted(drain(queue, 2)) == sent


def test_a_sender_that_comes_meanwhile_waits_and_loses_nothing(queue: Queue, connect) -> None:
    queue.send()
    slow, other = Queue(connect(autocommit=False)), Queue(connect())
    slow.call("rebuild")
    answers: list[int] = []
    sending = threading.Thread(target=lambda: answers.append(other.send()))
    sending.start()
    sending.join(0.2)
    slow.conn.commit()
    sending.join(60)
    assert answers[0] in drain(queue, 2)


def test_a_rebuild_needs_to_see_what_was_committed(queue: Queue, connect) -> None:
    conn = connect(autocommit=False)
    conn.execute("set transaction isolation level repeatable read")
    with pytest.raises(psycopg.errors.ActiveSqlTransaction):
        Queue(conn).call("rebuild")


def test_a_rebuild_is_told_in_the_event_log(queue: Queue) -> None:
    queue.send_batch("work", 3)
    queue.call("rebuild")
    query = "select entity_type, metadata from menzil.event_log where event_type = 'queue.rebuilt'"
    assert queue.one(query) == ("queue", {"messages": 3})


# --- another cluster --------------------------------------------------------------------------------------------------


def foreign(queue: Queue) -> None:
    """What a dump of a cluster that is far ahead says about transactions."""
    queue.conn.execute(
        """insert into menzil.look (at, folded_to, late)
           select now(), (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 5000000000)::text::xid8, '{}';
           select setval('menzil.withdrawn_xid', 5000000000000)"""
    )


def test_maintain_forgets_what_another_cluster_said(queue: Queue) -> None:
    sent = queue.send()
    foreign(queue)
    queue.call("maintain")
    assert queue.one("select count(*) from menzil.look where folded_to > pg_snapshot_xmax(pg_current_snapshot())") == 0
    assert queue.one("select menzil._register('menzil.withdrawn_xid')") == 0
    assert queue.lease().id == sent


def test_a_dequeue_does_not_believe_another_cluster(queue: Queue) -> None:
    sent = queue.send()
    foreign(queue)
    assert until(lambda: ids(queue.dequeue())) == [sent]


def test_senders_that_reach_the_transactions_of_another_cluster_lose_nothing(queue: Queue) -> None:
    """A proof from a cluster that is a little ahead would become believable before the first dequeue."""
    queue.conn.execute(
        """insert into menzil.look (at, folded_to, late)
           select now(), (x + 100)::text::xid8, array[(x + 90)::text::xid8]
             from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as x) x"""
    )
    sent = [queue.send() for _ in range(150)]
    assert sorted(drain(queue, len(sent))) == sent


def test_ends_of_another_cluster_do_not_make_room_in_the_queue(queue: Queue) -> None:
    """What a dump says has ended is gone once, also when this cluster has reached the ids of the other."""
    queue.send_batch("work", 50)
    queue.complete(*queue.dequeue(50))
    queue.call("_tally", False)
    queue.conn.execute(
        """update menzil.done set ended_xid = (x + 100)::text::xid8
             from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as x) x;
           update menzil.tally set writer = '{}'"""
    )
    queue.call("maintain")  # it notices the restore
    for _ in range(120):
        queue.send("work")
        queue.call("_tally", False)
    assert queue.one("select metric_value from menzil.metrics() where metric_name = 'messages_ended_total'") == 50
    queue.call("set_setting", "max_queue_size", "120")
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
        queue.send_batch("work", 2001)  # the limit may lag by 2,000


def test_a_rebuild_beside_a_sender_makes_no_room_for_ends_of_another_cluster(queue: Queue, connect) -> None:
    queue.send_batch("work", 50)
    queue.complete(*queue.dequeue(50))
    queue.call("_tally", False)
    queue.conn.execute(
        """update menzil.done set ended_xid = (x + 100000)::text::xid8
             from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as x) x"""
    )
    queue.call("maintain")
    queue.send("work")
    sender = connect(autocommit=False)
    sender.execute("select nextval('menzil.message_id')")
    queue.call("rebuild")
    sender.rollback()
    queue.call("_tally", False)
    assert queue.one("select sent - gone from menzil._told_totals()") >= 1
    assert queue.one("select metric_value from menzil.metrics() where metric_name = 'messages_ended_total'") == 50


def test_a_dequeue_inside_a_savepoint_leaves_a_proof_that_is_believed(queue: Queue, connect) -> None:
    other = Queue(connect(autocommit=False))
    queue.send()
    with other.conn.transaction(), other.conn.transaction():
        other.call("maintain")  # a full look
    assert queue.one("select xmin = any (late::xid[]) from menzil.look order by id desc limit 1")


def test_the_feed_has_an_order_again_after_a_restore(queue: Queue) -> None:
    queue.send_batch("work", 5)
    taken = queue.dequeue(3)
    for lease in taken:
        queue.call("message_complete", lease.id, lease.num_attempts)
    # As a dump of a server that is far ahead has them.
    queue.conn.execute(
        """update menzil.done set ended_xid = (ended_xid::text::bigint + 5000000000)::text::xid8;
           update menzil.event set xid = (xid::text::bigint + 5000000000)::text::xid8"""
    )
    before = queue.one("select count(*) from menzil.event_log")
    for feed in ("archive", "event_log"):
        assert queue.one(f"select foreign_rows from menzil.feed_position('{feed}')")
    depth = queue.one("select menzil._tally(true)")
    queue.call("rebuild")
    for feed in ("archive", "event_log"):
        assert not queue.one(f"select foreign_rows from menzil.feed_position('{feed}')")
    fed = "select count(*) from menzil.feed_between('0', (select xid from menzil.feed_position('archive')))"
    assert queue.one(fed) == 3
    lines = """select count(*) from menzil.event_log
      where xid < (select f.xid::xid8 from menzil.feed_position('event_log') f)"""
    assert queue.one(lines) == before + 1
    assert queue.one("select menzil._tally(true)") == depth == 2
