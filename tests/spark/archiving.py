"""Ended messages written straight into the tables: a month of history in a second."""

from __future__ import annotations

from typing import Any

import psycopg

# Messages that ended at the same moment, in the same way, ended together: a row of done for them, with gaps or without.
_ENDED = """
with e as materialized (
  select g.status, g.num_attempts as attempt, g.leased_at, g.ended_at, g.ended_xid, g.worker,
         min(g.id) as lo_id, max(g.id) as hi_id, count(*)::integer as n, array_agg(g.id order by g.id) as ids,
         array_agg(g.response order by g.id) as responses
    from given g group by 1, 2, 3, 4, 5, 6, g.id >> 12
)
insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker, ids, responses)
select e.lo_id, e.hi_id, e.n, e.status, e.attempt, e.leased_at, e.ended_at, e.ended_xid, e.worker,
       case when e.hi_id - e.lo_id <> e.n - 1 then e.ids end,
       case when array_remove(e.responses, null) <> '{}' then e.responses end
  from e"""

_STEPS = (
    "insert into menzil.channel (name) select distinct g.channel from given g"
    " where not exists (select 1 from menzil.channel c where c.name = g.channel)",
    """insert into menzil.message (id, channel_id, priority, created_at, scheduled_at, expires_at, payload, content,
         payload_hash, ordering_key, idempotency_key, correlation_id, headers, metadata, redrive_of, replay_of)
       select g.id, (select max(c.id) from menzil.channel c where c.name = g.channel), g.priority, g.created_at,
              g.scheduled_at, g.expires_at, g.payload, g.content, g.payload_hash, g.ordering_key, g.idempotency_key,
              g.correlation_id, g.headers, g.metadata, g.redrive_of, g.replay_of
         from given g order by g.id""",
    _ENDED,
    # A message that completed at its first try never came back.
    """insert into menzil.returned (id, created_at, attempts, retry_count, place_at, first_leased_at, last_error, state)
       select g.id, g.created_at, g.num_attempts, g.retry_count, g.created_at, g.first_leased_at, g.last_error, g.state
         from given g where g.num_attempts > 1 or g.status <> 'completed'""",
    """select setval('menzil.message_id',
                     greatest((select max(g.id) from given g), pg_sequence_last_value('menzil.message_id')))""",
)


def archive(conn: psycopg.Connection[Any], columns: str, rows: str, params: dict[str, Any]) -> None:
    """Archive what this query selects; the columns are those of menzil.archive. Their ids are given out after that."""
    with conn.transaction():
        conn.execute("create temp table given on commit drop as select * from menzil.archive limit 0")
        conn.execute(f"insert into given ({columns}) {rows}".encode(), params)
        for step in _STEPS:
            conn.execute(step.encode())
        conn.execute("drop table given")
