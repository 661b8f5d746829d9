"""The pulse beside the tables it counts: what it says, and what a count of everything says."""

from __future__ import annotations

from typing import Any

from tests.sql.queue import Queue

COUNTERS = ("sent", "completed", "failed_tries", "dead", "deferred", "expired", "cancelled")

# By channel and minute, from the tables themselves. The pulse has no row where nothing happened.
_TRUE = """
select channel, at, {sums} from (
  select c.name as channel, date_trunc('minute', m.created_at) as at, 'sent' as what
    from menzil.message m join menzil.channel c on c.id = m.channel_id
  union all
  select a.channel, date_trunc('minute', a.ended_at), case a.status when 'failed' then 'dead' else a.status end
    from menzil.archive a
  union all
  select a.channel, date_trunc('minute', a.ended_at),
         case a.outcome when 'deferred' then 'deferred' else 'failed_tries' end
    from menzil.attempts a where a.outcome <> 'completed') q
group by 1, 2 order by 1, 2""".format(
    sums=", ".join(f"count(*) filter (where what = '{word}') as {word}" for word in COUNTERS)
)

_TOLD = f"""
select channel, at, {", ".join(COUNTERS)} from menzil.pulse where {" + ".join(COUNTERS)} > 0 order by 1, 2"""

_TOTAL = f"""
select {", ".join(f"coalesce(sum({word}), 0)::bigint as {word}" for word in COUNTERS)}
  from menzil.pulse_of(p_from := '-infinity', p_to := 'infinity', p_step := '1 day')"""

_ENDS = """
select coalesce(sum(completed + dead + expired + cancelled), 0)::bigint as ended,
       coalesce(sum((select sum(n) from unnest(ended_ms) n)), 0)::bigint as counted from menzil.pulse"""


def count(queue: Queue, limit: int = 100_000) -> None:
    """Let the job do its rounds until it has counted everything."""
    for _ in range(10_000):
        if queue.one(f"select menzil._pulse({limit})") < 1000:
            return
    raise AssertionError("the pulse never comes to an end")


def true(queue: Queue) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in queue.all(_TRUE)]


def told(queue: Queue) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in queue.all(_TOLD)]


def check(queue: Queue) -> None:
    """The pulse says of every channel and minute what the tables say, and its total is the sum."""
    said = told(queue)
    assert said == true(queue)
    sums = [sum(row[n] for row in said) for n in range(2, 2 + len(COUNTERS))]
    assert list(queue.one(_TOTAL)) == sums
    ended, counted = queue.one(_ENDS)
    assert ended == counted
