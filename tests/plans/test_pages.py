"""Pages touched per message do not grow with the queue, also behind ordering keys and limits."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from bench import fill
from bench.buffers import Cost, cost

SHALLOW, DEEP = 5_000, 50_000

pytestmark = pytest.mark.slow


def grown(dsn: str, channels: int, per_key: int = 0, **limits: int) -> tuple[Cost, Cost]:
    """The costs in a shallow queue and in the same queue when it is ten times as deep."""
    costs = []
    with psycopg.connect(dsn, autocommit=True) as conn:
        fill.channels(conn, channels, **limits)
        filled = 0
        for depth in (SHALLOW, DEEP):
            fill.spread(conn, filled, depth - filled, channels, keys=depth // per_key if per_key else 0)
            fill.settle(conn)
            costs.append(cost(conn))
            filled = depth
    return costs[0], costs[1]


def test_many_ordering_keys_cost_the_same_in_a_deep_queue(new_db: Callable[[], str]) -> None:
    shallow, deep = grown(new_db(), channels=1, per_key=10)
    assert deep.total <= 1.2 * shallow.total


def test_ordering_keys_of_many_channels_cost_the_same_in_a_deep_queue(new_db: Callable[[], str]) -> None:
    shallow, deep = grown(new_db(), channels=200, per_key=10)
    assert deep.total <= 1.2 * shallow.total


def test_limited_channels_cost_the_same_in_a_deep_queue(new_db: Callable[[], str]) -> None:
    shallow, deep = grown(new_db(), channels=200, concurrency=50, interval_ms=1_000, rate=1_000)
    assert deep.total <= 1.2 * shallow.total


def test_one_ordering_key_with_very_many_messages_costs_the_others_nothing(new_db: Callable[[], str]) -> None:
    with psycopg.connect(new_db(), autocommit=True) as conn:
        fill.channels(conn, 1)
        fill.spread(conn, 0, SHALLOW, 1, keys=SHALLOW // 10)
        fill.settle(conn)
        before = cost(conn)
        fill.spread(conn, 0, DEEP, 1, keys=1)
        fill.spread(conn, SHALLOW, SHALLOW, 1, keys=SHALLOW // 10)
        fill.settle(conn)
        assert cost(conn).total <= 1.2 * before.total


LIFE = """
do $$
begin
  for n in 1 .. 400 loop
    perform menzil.send('c' || n % 4, '1');
    perform menzil.message_complete(q.ids, q.attempts)
      from (select array_agg(d.id) as ids, array_agg(d.num_attempts) as attempts
              from menzil.message_dequeue(30000, 1) d) q where q.ids is not null;
    commit;
  end loop;
end $$"""


@pytest.mark.parametrize("known", [False, True], ids=["never analyzed", "analyzed"])
def test_snapshot_that_is_held_costs_consumers_little(new_db: Callable[[], str], known: bool) -> None:
    """Every change since then leaves a dead row that VACUUM must keep. To walk over them costs hundreds of pages."""
    dsn = new_db()
    with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(dsn) as old:
        fill.channels(conn, 4)
        fill.spread(conn, 0, 400, 4)
        fill.settle(conn)
        conn.execute(LIFE)
        before = cost(conn, size=1)
        old.execute("set transaction isolation level repeatable read")
        old.execute("select count(*) from menzil.message")
        for _ in range(3):
            conn.execute(LIFE)
        if known:
            conn.execute("analyze menzil.lane, menzil.run, menzil.line, menzil.look, menzil.lease, menzil.done")
        dead = conn.execute("select pg_relation_size('menzil.lane') / 8192").fetchone()
        held = cost(conn, size=1)
        assert dead is not None
        assert dead[0] > 10, "the lanes have too few dead versions to prove anything"
        assert held.dequeue <= 2 * before.dequeue
        assert held.complete <= 2 * before.complete
