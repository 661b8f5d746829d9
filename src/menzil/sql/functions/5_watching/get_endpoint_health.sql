-- How endpoints stand: one row each, or one endpoint. Reads only: news and messages that no dequeue has folded yet are read from
-- the log. Messages on the schedule and behind ordering keys are counted up to 100,000 of one endpoint, and up to 10,001 of each where
-- all endpoints are asked; so are lines of the log that no dequeue has folded, as menzil._waiting says.
create or replace function menzil.get_endpoint_health(p_name text default null)
returns table (
  endpoint_name text, protocol text, enabled boolean, circuit_state text, circuit_failure_count integer, last_success_at timestamptz,
  last_failure_at timestamptz, pending_messages bigint, oldest_pending_message timestamptz, paused boolean, in_flight bigint,
  circuit_opened_at timestamptz, next_probe_at timestamptz, waits_until timestamptz
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_id integer := (select c.id from menzil.channel c where c.name = p_name and c.protocol is not null and c.dropped_at is null);
begin
  perform menzil._refuse_unknown_endpoint(p_name) where p_name is not null and v_id is null;
  return query
    with gate as materialized (select g.* from menzil._gates_as_told(v_id) g),
      flying as materialized (select f.* from menzil._in_flight(v_id) f),
      waiting as materialized (select w.* from menzil._waiting(case when v_id is null then 10001 else 100000 end, v_now, p_channel_id := v_id) w where w.is_endpoint),
      endpoint as materialized (
        select c.id from menzil.channel c where c.protocol is not null and c.dropped_at is null and (v_id is null or c.id = v_id)),
      -- When the oldest waiting message of each endpoint was created. The first message of each lane is asked, of each channel's
      -- lines the one with the lowest id, the first on the schedule, and the first behind an ordering key that needs a head.
      oldest as materialized (
        select f.channel_id, min(m.created_at) as created_at
          from (select l.channel_id, h.id
                  from menzil.lane l
                  cross join lateral (
                    select u.id from menzil._runs_ahead(l, 3) r cross join lateral unnest(r.ids) u(id)
                     where not exists (select 1 from menzil.withdrawn w where w.id = u.id) limit 1) h
                 where l.push and l.tail_due is not null and (v_id is null or l.channel_id = v_id)
                union all
                select n.channel_id, min(n.first_id)
                  from (select n.channel_id, n.rank, n.flags, n.first_id from menzil.aside n
                        union all (select n.channel_id, n.rank, n.flags, n.first_id from menzil.line n limit 20000)) n
                 where n.rank is not null and n.flags & 64 = 0 and (v_id is null or n.channel_id = v_id) and not exists (select 1 from menzil.withdrawn w where w.id = n.first_id) group by n.channel_id
                union all
                select e.id, s.id from endpoint e
                  cross join lateral (select s.id from menzil.scheduled s where s.channel_id = e.id order by s.due_at limit 1) s
                union all
                select e.id, k.id from endpoint e
                  cross join lateral (select min(k.id) as id from (
                    select k.id from menzil.key_queue k where k.channel_id = e.id and k.waits = 1 limit case when v_id is null then 10001 else 100000 end) k) k) f
          cross join lateral (select m.created_at from menzil.message m where m.id = f.id offset 0) m
         group by f.channel_id)
    select c.name, c.protocol, c.enabled, (array['closed', 'half_open', 'open'])[g.circuit + 1], g.failure_count, g.last_success_at, g.last_failure_at,
           w.count, case when w.count > 0 then o.created_at end, c.paused, coalesce(f.count, 0), g.opened_at,
           case when g.circuit = 2 then g.probe_at end, case when g.wait_until > v_now then g.wait_until end
      from waiting w
      join menzil.channel c on c.id = w.channel_id
      join gate g on g.channel_id = c.id
      left join flying f on f.channel_id = c.id
      left join oldest o on o.channel_id = c.id
     order by c.name;
end $$;
