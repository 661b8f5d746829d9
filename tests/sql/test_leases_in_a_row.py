"""A lease of messages in a row names the first and the last: menzil.lease.ids is null. Each is found, and no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, ids

LISTED = "select lo_id, hi_id, ids from menzil.lease order by lo_id"
EVERY = {
    "queue": "select id from menzil.queue where status = 'processing' order by id",
    "status": "select m.id from menzil.message m cross join lateral menzil.message_status(m.id) s"
    " where s.status = 'processing' order by m.id",
    "_messages": "select id from menzil._messages where status = 'processing' order by id",
    "_message_in_full": "select id from menzil._message_in_full where status = 'processing' order by id",
    "messages_in_window": "select id from menzil.messages_in_window(9000000, 1000, 1000, p_status => '{processing}')"
    " where passed is null order by id",
    "_lease_of": "select id from menzil.message where menzil._lease_of(id) is not null order by id",
    "message_why": "select m.id from menzil.message m cross join lateral menzil.message_why(m.id) w"
    " where w.reason = 'in_flight' order by m.id",
    "message_life": "select m.id from menzil.message m cross join lateral menzil.message_life(m.id) l"
    " where l.what = 'in_flight' order by m.id",
}
COUNTS = (
    "select coalesce(sum(count), 0)::int from menzil._in_flight()",
    "select metric_value::int from menzil.metrics() where metric_name = 'in_flight'",
    "select (menzil._count_live() - (select count(*) from menzil.queue where status = 'pending'))::int",
    "select (select sum(menzil._count_channel(c.id)) from menzil.channel c)::int"
    " - (select count(*) from menzil.queue where status = 'pending')::int",
    "select (select count(*) from menzil._live_ids_to(9000000))::int"
    " - (select count(*) from menzil.queue where status = 'pending')::int",
)


def shown(queue: Queue, query: str) -> list[int]:
    return [row.id for row in queue.all(query)]


def everywhere(queue: Queue, expected: list[int]) -> None:
    """Every reader of leases shows these messages, and only these."""
    assert {name: shown(queue, query) for name, query in EVERY.items()} == dict.fromkeys(EVERY, expected)
    assert [queue.one(query) for query in COUNTS] == [len(expected)] * len(COUNTS)
    assert queue.one("select lost from menzil._check_places()") == 0


def _retried(queue: Queue) -> None:
    queue.send_batch("work", 12)
    for message in queue.dequeue(12):
        assert queue.fail(message, retry_after="0 s") == "retry"


def _keyed(queue: Queue) -> None:
    for number in range(12):
        queue.send(ordering_key=f"k{number}")


def _limited(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_concurrency=100)
    queue.send_batch("work", 12)


def _singles(queue: Queue) -> None:
    for _ in range(12):
        queue.send()


def _idle(queue: Queue) -> None:
    """The lane exists and a look was made just now: up to 12 lines are leased the fresh way."""
    queue.send()
    queue.complete(queue.lease())
    queue.conn.execute("select setval('menzil.swept_at', menzil._microseconds(clock_timestamp()))")
    _singles(queue)


def _batch(queue: Queue) -> None:
    queue.send_batch("work", 12)


@pytest.mark.parametrize("fill", [_batch, _singles, _idle, _limited, _keyed, _retried])
@pytest.mark.parametrize("limit", [1, 5, 12, 50])
def test_messages_in_a_row_are_leased_without_a_list_and_every_reader_finds_them(
    queue: Queue, fill: Callable[[Queue], None], limit: int
) -> None:
    fill(queue)
    taken = queue.dequeue(limit)
    assert len(taken) == min(limit, 12)
    assert [(row.lo_id, row.hi_id, row.ids) for row in queue.all(LISTED)] == [(min(ids(taken)), max(ids(taken)), None)]
    everywhere(queue, sorted(ids(taken)))
    if fill is _limited:
        assert queue.one("select in_flight from menzil.channels where name = 'work'") == len(taken)
    assert queue.complete(*taken) == dict.fromkeys(ids(taken), "settled")
    assert queue.all(LISTED) == []
    everywhere(queue, [])


def test_a_lease_longer_than_an_end_may_be_ends_in_parts(queue: Queue) -> None:
    sent = queue.send_batch("work", 5000)
    taken = queue.dequeue(5000)
    assert [(row.lo_id, row.hi_id, row.ids) for row in queue.all(LISTED)] == [(sent[0], sent[-1], None)]
    assert queue.complete(*taken) == dict.fromkeys(sent, "settled")
    assert queue.one("select count(*), sum(n)::int, max(hi_id - lo_id) < 4096 from menzil.done")[1:] == (5000, True)


def test_each_message_leased_apart_names_itself(queue: Queue) -> None:
    sent = queue.send_batch("work", 4)
    rows = queue.all("select id from menzil.message_dequeue(60000, 4, p_apart => true)")
    assert [row.id for row in rows] == sent
    assert [(row.lo_id, row.hi_id, row.ids) for row in queue.all(LISTED)] == [(id, id, None) for id in sent]
    everywhere(queue, sent)


@pytest.mark.parametrize("more", [0, 4])
def test_messages_with_gaps_are_listed(queue: Queue, more: int) -> None:
    queue.call("channel_set", "other")
    own = []
    for _ in range(4 + more):
        own.append(queue.send("work"))
        queue.send("other")
    taken = queue.dequeue(4, ["work"])
    assert ids(taken) == own[:4]
    assert [row.ids for row in queue.all(LISTED)] == [own[:4]]
    everywhere(queue, own[:4])
    assert queue.complete(*taken) == dict.fromkeys(own[:4], "settled")


def test_messages_with_gaps_that_are_leased_as_soon_as_they_are_sent_are_listed(queue: Queue) -> None:
    queue.send()
    queue.complete(queue.lease())
    own = []
    for _ in range(4):
        own.append(queue.send())
        queue.one("select nextval('menzil.message_id')")
    queue.conn.execute("select setval('menzil.swept_at', menzil._microseconds(clock_timestamp()))")
    assert ids(queue.dequeue(4)) == own
    assert [row.ids for row in queue.all(LISTED)] == [own]
    everywhere(queue, own)


@pytest.mark.parametrize("more", [0, 4])
def test_messages_in_a_row_but_not_in_this_order_are_listed(queue: Queue, more: int) -> None:
    """So that a settle that shows them as they came finds the whole lease."""
    dues = (1, 3, 2, 4, *range(5, 5 + more))
    lane = [queue.one(f"select menzil.message_create('work', 'x', '2020-01-01 00:00:{due:02}')") for due in dues]
    taken = queue.dequeue(4)
    assert ids(taken) == [lane[0], lane[2], lane[1], lane[3]]
    assert [row.ids for row in queue.all(LISTED)] == [ids(taken)]
    everywhere(queue, sorted(lane[:4]))
    assert queue.complete(*taken) == dict.fromkeys(ids(taken), "settled")


@pytest.mark.parametrize("limit", [None, 1, 3])  # of message_next; None: message_complete
@pytest.mark.parametrize(
    ("places", "ends"),
    [
        ((0, 0, 2), {0, 2}),
        ((0, 2, 2), {0, 2}),
        ((2, 1, 0), {0, 1, 2}),
        ((1, 0, 2), {0, 1, 2}),
        ((0, 3, 2), {0, 2, 3}),
        ((0, 9, 2), {0, 2}),  # in flight as well, of another batch and with another attempt
        ((0, 1), {0, 1}),
        ((1, 2), {1, 2}),
        ((1,), {1}),
        ((0,), {0}),
        ((5, 0), {0, 5}),  # 5 was leased alone
        ((5, 5), {5}),
        ((5,), {5}),
    ],
)
def test_only_messages_that_are_shown_are_settled(
    queue: Queue, limit: int | None, places: tuple[int, ...], ends: set[int]
) -> None:
    sent = queue.send_batch("work", 20)
    first, second = queue.dequeue(3), queue.dequeue(2)
    assert ids([*first, *second, queue.lease()]) == sent[:6]
    queue.conn.execute("update menzil.lease set attempt = 2 where lo_id = %s", (sent[3],))
    tokens = [sent[place] if place != 9 else sent[4] for place in places]
    attempts = [2 if place == 3 else 1 for place in places]
    if limit is None:
        queue.all("select * from menzil.message_complete(%s, %s)", tokens, attempts)
        left = set(sent[:6])
    else:
        queue.conn.execute("select setval('menzil.swept_at', menzil._microseconds(clock_timestamp()))")  # the short way
        more = queue.all("select id, outcome from menzil.message_next(%s, %s, 60000, %s)", tokens, attempts, limit)
        left = set(sent[:6]) | {row.id for row in more if row.outcome is None}
    left -= {sent[place] for place in ends}
    everywhere(queue, sorted(left))
    assert {id for id in sent if queue.status(id).status == "completed"} == {sent[place] for place in ends}


@pytest.mark.parametrize("call", ["message_complete", "message_next"])
def test_a_lease_that_lists_messages_in_a_row_is_settled_like_any_other(queue: Queue, call: str) -> None:
    """Leases of an earlier schema list them."""
    sent = queue.send_batch("work", 9)
    queue.dequeue(6)
    queue.conn.execute("update menzil.lease set ids = array(select generate_series(lo_id, hi_id))")
    everywhere(queue, sent[:6])
    queue.conn.execute("select setval('menzil.swept_at', menzil._microseconds(clock_timestamp()))")
    if call == "message_complete":
        queue.all("select * from menzil.message_complete(%s, %s)", sent[:6], [1] * 6)
        everywhere(queue, [])
    else:
        queue.all("select * from menzil.message_next(%s, %s, 60000, 2)", sent[:6], [1] * 6)
        everywhere(queue, sent[6:8])
    assert {id for id in sent if queue.status(id).status == "completed"} == set(sent[:6])


@pytest.mark.parametrize("batches", [None, 0, 1])
def test_parts_of_a_lease_are_settled_one_after_the_other(queue: Queue, batches: int | None) -> None:
    sent = queue.send_batch("work", 8)
    taken = queue.dequeue(8)
    left = set(sent)
    for part in ([sent[3]], sent[5:7], [sent[0], sent[7]], [sent[1], sent[2], sent[4]]):
        hint = None if batches is None else [sent[0] + batches] * len(part)
        found = queue.all("select * from menzil.message_complete(%s, %s, null, %s)", part, [1] * len(part), hint)
        assert {row.outcome for row in found} == {"settled"}
        left -= set(part)
        everywhere(queue, sorted(left))
        again = queue.all("select * from menzil.message_complete(%s, %s)", part, [1] * len(part))
        assert {row.outcome for row in again} == {"unknown"}
    assert ids(taken) == sent
    assert queue.all(LISTED) == []


@pytest.mark.parametrize("part", [[0], [0, 1, 2], [3, 4, 5], [1, 4], [4, 0], [2, 3, 1, 5]])
@pytest.mark.parametrize("batches", [None, [0, 3], [3, 0], [0, 0], [1, 1]])
def test_messages_of_several_leases_are_settled_together_whatever_the_hint(
    queue: Queue, part: list[int], batches: list[int] | None
) -> None:
    sent = queue.send_batch("work", 6)
    queue.dequeue(3)
    queue.dequeue(3)
    own = [sent[place] for place in part]
    hints = None if batches is None else [sent[batches[place // 3]] for place in part]
    found = queue.all("select * from menzil.message_complete(%s, %s, null, %s)", own, [1] * len(own), hints)
    assert sorted((row.id, row.outcome) for row in found) == [(id, "settled") for id in sorted(own)]
    everywhere(queue, [id for id in sent if id not in own])


@pytest.mark.parametrize("settle", ["message_fail", "message_defer", "message_heartbeat"])
@pytest.mark.parametrize("part", [slice(0, 6), slice(2, 4), slice(0, 1), slice(5, 6)])
def test_every_settle_finds_its_part(queue: Queue, settle: str, part: slice) -> None:
    sent = queue.send_batch("work", 6)
    queue.dequeue(6)
    own: list[Any] = [sent[part], [1] * len(sent[part])]
    more = {"message_fail": ", array_fill('no'::text, array[%s])", "message_defer": "", "message_heartbeat": ", 90000"}
    if settle == "message_fail":
        own.append(len(sent[part]))
    found = queue.all(f"select * from menzil.{settle}(%s, %s{more[settle]})", *own)
    assert [row.id for row in found] == sent[part]
    assert {row.outcome for row in found} == {"retry" if settle == "message_fail" else "settled"}
    kept = sent if settle == "message_heartbeat" else [id for id in sent if id not in sent[part]]
    everywhere(queue, kept)


@pytest.mark.parametrize("settled", [[], [2], [0]])
def test_a_lease_that_ran_out_comes_back_whole(queue: Queue, settled: list[int]) -> None:
    sent = queue.send_batch("work", 6)
    taken = queue.dequeue(6)
    queue.complete(*(taken[place] for place in settled))
    left = [id for place, id in enumerate(sent) if place not in settled]
    everywhere(queue, left)
    pass_time(queue.conn, 61)
    assert queue.call("recover_stale_messages") == len(left)
    assert [(row.id, row.num_attempts) for row in queue.dequeue(10)] == [(id, 2) for id in left]
    everywhere(queue, left)


def test_messages_of_a_lease_are_not_cancelled(queue: Queue) -> None:
    sent = queue.send_batch("work", 4)
    queue.dequeue(4)
    for id in sent:
        assert queue.call("message_cancel", id) is False
    assert queue.one("select menzil._cancel_these(%s, false)", sent) == []
    everywhere(queue, sent)


def test_messages_that_expire_in_flight_do_not_end(queue: Queue) -> None:
    sent = [queue.send(expires_at=queue.now() + timedelta(seconds=60)) for _ in range(3)]
    assert ids(queue.dequeue(3, lock_ms=600_000)) == sent
    pass_time(queue.conn, 61)
    assert queue.call("mark_expired_messages") == 0
    everywhere(queue, sent)


@pytest.mark.parametrize("sized", [False, True])
def test_a_limit_counts_what_was_leased_before_it_was_set(queue: Queue, sized: bool) -> None:
    if sized:  # then the lease names its channel, and no gate counted it
        queue.call("channel_set", "work", p_max_size=100)
    sent = queue.send_batch("work", 12)
    first = queue.dequeue(5)
    queue.call("channel_set", "work", p_max_concurrency=7)
    assert ids([*first, *queue.dequeue(10)]) == sent[:7]
    assert queue.one("select in_flight from menzil.channels where name = 'work'") == 7
    everywhere(queue, sent[:7])
    assert queue.dequeue(10) == []
    queue.complete(*first)
    # No gate counted them: it looks again after a while.
    assert ids(until(lambda: queue.dequeue(10))) == sent[7:]


def test_a_rebuild_takes_out_of_a_lease_what_has_ended(queue: Queue) -> None:
    sent = queue.send_batch("work", 6)
    queue.dequeue(6)
    queue.conn.execute("select menzil._end(%s, 'completed', 1, now(), null, now())", ([sent[0], sent[1], sent[4]],))
    queue.call("rebuild")
    everywhere(queue, [sent[2], sent[3], sent[5]])
    assert [row.ids for row in queue.all(LISTED)] == [[sent[2], sent[3], sent[5]]]
