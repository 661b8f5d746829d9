"""message_next: the last batch is settled and the next is leased in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue, ids


def following(
    queue: Queue, done: Sequence[Any] = (), limit: int = 1, channels: list[str] | None = None, lock_ms: int = 60_000
) -> list[Any]:
    """Settle these and lease up to `limit` more."""
    return queue.all(
        "select * from menzil.message_next(%s::bigint[], %s::bigint[], %s, %s, %s)",
        [message.id for message in done],
        [message.num_attempts for message in done],
        lock_ms,
        limit,
        channels,
    )


@pytest.mark.parametrize("limit", [1, 3, 7])
@pytest.mark.parametrize("channels", [None, ["work"], ["work", "other"]], ids=str)
def test_everything_is_leased_in_order_and_settled_once(queue: Queue, limit: int, channels: list[str] | None) -> None:
    queue.call("channel_set", "other")
    sent = [queue.send() for _ in range(5)] + queue.send_batch("work", 40)
    served: list[int] = []
    batch: list[Any] = []
    while batch := following(queue, batch, limit, channels):
        assert {message.outcome for message in batch} == {None}
        served += ids(batch)
    assert served == sent
    assert queue.one("select count(*) from menzil.archive where status = 'completed'") == len(sent)
    assert queue.one("select count(*) from menzil.queue") == 0


def test_a_token_that_is_stale_comes_back_with_its_outcome(queue: Queue) -> None:
    queue.send_batch("work", 20)
    batch = following(queue, limit=3)
    queue.complete(batch[1])
    rows = following(queue, batch, 3)
    assert [(row.id, row.outcome) for row in rows if row.outcome] == [(batch[1].id, "unknown")]
    assert len([row for row in rows if row.outcome is None]) == 3
    assert {queue.status(message.id).status for message in batch} == {"completed"}


def test_a_cancelled_message_is_left_out(queue: Queue) -> None:
    sent = queue.send_batch("work", 20)
    batch = following(queue, limit=2)
    assert queue.call("message_cancel", sent[2]) is True
    assert ids(following(queue, batch, 2)) == sent[3:5]
    assert queue.status(sent[2]).status == "cancelled"


def test_a_higher_priority_waits_for_a_tenth_of_a_second_at_most(queue: Queue) -> None:
    queue.send_batch("work", 500)
    batch = following(queue, limit=2)
    urgent = queue.send(priority=9)
    began = queue.now()
    while urgent not in ids(batch):
        batch = following(queue, batch, 2)
        assert batch, "the urgent message never came"
    assert (queue.now() - began).total_seconds() < 1


def test_limits_keys_and_retries_go_the_long_way(queue: Queue) -> None:
    queue.call("channel_set", "narrow", 2)
    queue.send_batch("narrow", 5)
    batch = following(queue, limit=5, channels=["narrow"])
    assert len(batch) == 2
    assert len(following(queue, batch, 5, ["narrow"])) == 2
    first, second = queue.send(ordering_key="k"), queue.send(ordering_key="k")
    (head,) = following(queue, limit=5, channels=["work"])
    assert head.id == first
    queue.fail(head, retry_after="0")
    (again,) = following(queue, limit=5, channels=["work"])
    assert (again.id, again.num_attempts) == (first, 2)
    (last,) = following(queue, [again], 5, ["work"])
    assert last.id == second


def test_bad_arguments_are_refused(queue: Queue) -> None:
    for call, state in (
        ("message_next(null, null, 1000)", "22004"),
        ("message_next('{}', '{}', 0)", "22023"),
        ("message_next('{}', '{}', 1000, 0)", "22023"),
        ("message_next('{1}', '{}', 1000)", "22023"),
        ("message_next('{}', '{}', 1000, 1, '{nowhere}')", "42704"),
    ):
        with pytest.raises(psycopg.Error) as error:
            queue.all(f"select * from menzil.{call}")
        assert error.value.sqlstate == state, call


def test_channels_to_leave_out_without_all_endpoints_are_refused_beside_a_hot_lane(queue: Queue) -> None:
    queue.send_batch("work", 20)
    assert len(queue.dequeue(2)) == 2
    # Within 100 ms of a full look message_next takes the short way. The lease time makes it wait for the look.
    looked = "(select setval('menzil.swept_at', menzil._microseconds(clock_timestamp())) as at) l"
    call = "menzil.message_next('{}', '{}', least(60000, l.at), 2, p_except => array['work'])"
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="p_except goes with p_endpoints"):
        queue.all(f"select m.* from {looked} cross join lateral {call} m")
    assert queue.one("select count(*) from menzil.queue where status = 'processing'") == 2
