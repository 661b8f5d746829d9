"""menzil.turns: what it shows is what the next dequeue leases, and looking changes nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue, ids
from tests.sql.test_views_agree import Play


def turns(queue: Queue, limit: int = 50) -> list[Any]:
    return queue.rows("turns", limit)


def shown(rows: Sequence[Any]) -> list[int]:
    return [row.message_id for row in rows]


# What becomes due or ends by itself in the next two seconds.
SOON = """
select exists (
  select 1 from (select due_at from menzil.scheduled union all select watch_at from menzil.lease
                 union all select expires_at from menzil.expiring
                 union all select unnest(array[g.probe_at, g.wait_until])
                             from menzil._gates_seen(null, clock_timestamp()) g) q(at)
   where q.at between clock_timestamp() - interval '100 ms' and clock_timestamp() + interval '2 s')"""


def settle_turns(queue: Queue) -> None:
    """Let nothing become due between two calls, let no two lanes have been folded in the same microsecond, and let
    100 ms have passed, so that a dequeue reads the whole log."""
    while queue.one(SOON):
        pass_time(queue.conn, 2.2)
    queue.conn.execute(
        "update menzil.lane set next_at = next_at - (channel_id * 11 + rank) * interval '1 us', v = v + 1"
    )
    queue.conn.execute("select setval('menzil.swept_at', 0), setval('menzil.turn_mark', 0)")


# Channels whose first messages no dequeue has folded yet get their turn at once, in an order that nothing promises.
NEWLY = """
select count(*)
  from menzil._lanes_told(array(select t from menzil._told_next(clock_timestamp()) t), clock_timestamp())"""


@pytest.mark.parametrize("seed", range(30))
def test_the_next_dequeue_leases_what_was_shown(queue: Queue, seed: int) -> None:
    play = Play(queue, seed)
    queue.call("channel_set", "paced", p_release_interval_ms=3_600_000, p_release_count=40)
    dice = random.Random(seed)
    exactly = 0
    for _ in range(25):
        for _ in range(dice.choice((1, 3, 8))):
            play.step()
        for _ in range(dice.choice((0, 0, 2, 10))):
            play.sent.append(queue.send("paced", priority=dice.choice((0, 5))))
        if dice.random() < 0.5:
            queue.call("maintain")
        settle_turns(queue)
        limit = dice.choice((1, 2, 5, 10, 30, 100))
        newly = queue.one(NEWLY)
        expected = turns(queue, limit)
        leased = queue.dequeue(limit)
        play.held += leased
        if newly < 2:
            exactly += 1
            assert shown(expected) == ids(leased)
        elif len(leased) < limit:
            assert Counter(shown(expected)) == Counter(ids(leased))
        assert Counter(row.priority for row in expected) == Counter(message.priority for message in leased)
    assert exactly > 5


def test_probe_whose_lease_ran_out_is_shown_as_the_next(queue: Queue) -> None:
    queue.call("set_setting", "circuit_breaker_threshold", "1")
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    queue.send_batch("hook", 3)
    (first,) = queue.dequeue(1)
    queue.fail(first)
    pass_time(queue.conn, 3600)
    (probe,) = queue.dequeue(10)
    assert turns(queue) == []
    pass_time(queue.conn, 3600)
    (shown_first,) = turns(queue)
    assert [message.id for message in queue.dequeue(10)] == [shown_first.message_id] == [probe.id]
