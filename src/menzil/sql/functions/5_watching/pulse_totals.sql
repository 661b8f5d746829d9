-- What passed since the pulse began to count, for counters of a monitoring system: numbers only grow while a channel exists. The channels
-- of p_channels and the p_limit busiest ones; the row without a channel is the sum of all channels, dropped ones included. failed: tries
-- that failed without an HTTP status, then with 1xx to 5xx. ended_ms and try_ms: 12 counters, as in pulse_of.
create or replace function menzil.pulse_totals(p_limit integer default 200, p_channels text[] default null) returns table (
  channel text, since timestamptz, sent bigint, completed bigint, dead bigint, expired bigint, cancelled bigint, deferred bigint, recovered bigint,
  failed bigint[], ended_ms bigint[], try_ms bigint[]
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  perform menzil._check_limit(p_limit, 10000);
  return query
    with chosen as (
      select c.id, c.name from menzil.channel c where c.dropped_at is null and c.name = any (p_channels)
      union
      (select c.id, c.name from menzil.channel c left join menzil.pulse_total t on t.channel_id = c.id
        where c.dropped_at is null order by coalesce(t.sent, 0) desc, c.id limit p_limit)
    )
    select q.name, t.since, coalesce(t.sent, 0), coalesce(t.completed, 0), coalesce(t.dead, 0), coalesce(t.expired, 0), coalesce(t.cancelled, 0),
           coalesce(t.deferred, 0), coalesce(t.recovered, 0), coalesce(t.failed, array_fill(0::bigint, array[6])),
           coalesce(t.ended_ms, array_fill(0::bigint, array[12])), coalesce(t.try_ms, array_fill(0::bigint, array[12]))
      from (select c.id, c.name from chosen c union all select 0, null) q
      left join menzil.pulse_total t on t.channel_id = q.id
     order by q.name nulls first;
end $$;
