-- The change feed between two places: messages ended by transactions from p_from to before p_to, in the order of the feed,
-- by transaction and id. With p_to at most what menzil.feed_position('archive') says, no later call finds more.
create or replace function menzil.feed_between(p_from text, p_to text) returns setof menzil.archived
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set timezone = 'UTC' set work_mem = '64MB'
set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = on set enable_mergejoin = on
set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_from xid8 := menzil._xid_from(p_from);
  v_to xid8 := menzil._xid_from(p_to);
  v_ends record;
  v_singly boolean;
  v_starts timestamptz;   -- bounds of the months that have messages with these ids: the planner leaves out the others
  v_stops timestamptz;
  v_names text[];   -- by channel id: a look into a variable is cheaper than a join. A generic plan keeps the variable a variable.
begin
  perform 1 from menzil.message m where false;   -- the parent is locked before a partition of it, as _make_archive_month does it
  select count(*) as rows, sum(d.n) as messages, min(d.lo_id) as first_id, max(d.hi_id) as last_id,
         bool_and(d.ids is null and d.responses is null and d.attempt = 1 and d.status = 'completed') as plain into v_ends
    from menzil.done d where d.ended_xid >= v_from and d.ended_xid < v_to;
  if v_ends.rows = 0 then
    return;
  end if;
  select min(a.month_start), max(a.month_start) + interval '1 month' into v_starts, v_stops
    from menzil.archive_month a where menzil._has_ids('archive_' || to_char(a.month_start, 'YYYY_MM'), v_ends.first_id, v_ends.last_id);
  if menzil._has_ids('archive_default', v_ends.first_id, v_ends.last_id) then
    v_starts := '-infinity';
    v_stops := 'infinity';
  end if;
  -- Ended one by one, with ids close together: all messages in between are read, and joined.
  v_singly := v_ends.messages < v_ends.rows * 8 and v_ends.last_id - v_ends.first_id < v_ends.messages * 4;
  if v_ends.plain and not v_singly then
    -- Ids without gaps do not overlap, so end by end is the order of the feed. Lateral queries are joined by nested loops, which
    -- keep that order: nothing is sorted.
    v_names := array(select c.name from generate_series(1, least(1000, (select max(c.id) from menzil.channel c))) g(id) left join menzil.channel c using (id) order by g.id);
    return query
      select m.id, d.status, coalesce(v_names[m.channel_id], (select c.name from menzil.channel c where c.id = m.channel_id)), m.channel_id, m.priority, d.attempt, 0, m.created_at, m.scheduled_at, m.expires_at, d.leased_at, d.leased_at, d.ended_at,
             d.ended_xid, d.worker, m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata,
             null::text, null::bytea, m.redrive_of, m.replay_of, null::jsonb
        from (select d.* from menzil.done d where d.ended_xid >= v_from and d.ended_xid < v_to order by d.ended_xid, d.lo_id offset 0) d
        cross join lateral (select m.* from menzil.message m where m.id between d.lo_id and d.hi_id and m.created_at >= v_starts and m.created_at < v_stops
                             order by m.id offset 0) m;
    return;
  elsif v_singly then
    perform set_config('enable_nestloop', 'off', true), set_config('enable_mergejoin', 'off', true);   -- until the function ends
  end if;
  return query execute format($sql$
    select e.id, e.status, e.channel, e.endpoint_id, e.priority, e.num_attempts, e.retry_count, e.created_at, e.scheduled_at, e.expires_at, e.first_leased_at,
           e.leased_at, e.ended_at, e.ended_xid, e.worker, e.payload, e.content, e.payload_hash, e.ordering_key, e.idempotency_key, e.correlation_id, e.headers,
           e.metadata, e.last_error, e.state, e.redrive_of, e.replay_of, e.response
      from menzil.%s
     where e.ended_xid >= $1 and e.ended_xid < $2 and e.created_at >= $3 and e.created_at < $4 and e.id between $5 and $6 order by e.ended_xid, e.id$sql$,
      case when v_singly then '_ended_singly e' else '_ended e' end) using v_from, v_to, v_starts, v_stops, v_ends.first_id, v_ends.last_id;
end $$;
