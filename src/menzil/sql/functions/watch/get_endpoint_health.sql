-- How endpoints stand: one row each, or one endpoint. Counts stop at 100,000.
create or replace function menzil.get_endpoint_health(p_name text default null)
returns table (
  endpoint_name text, protocol text, enabled boolean, circuit_state text, circuit_failure_count integer, last_success_at timestamptz,
  last_failure_at timestamptz, pending_messages bigint, oldest_pending_message timestamptz, paused boolean, in_flight bigint,
  circuit_opened_at timestamptz, next_probe_at timestamptz, waits_until timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  if p_name is not null and not exists (select 1 from menzil.channel c where c.name = p_name and c.protocol is not null and c.dropped_at is null) then
    perform menzil._refuse_unknown_endpoint(p_name);
  end if;
  perform menzil._catch_up();
  return query
    with flying as materialized (select l.channel_id, count(*) from menzil.lease l group by l.channel_id)
    select c.name, c.protocol, c.enabled, (array['closed', 'half_open', 'open'])[g.circuit + 1], g.failure_count, g.last_success_at, g.last_failure_at,
           least(r.count + s.count + k.count, 100000), o.at, c.paused, coalesce((select f.count from flying f where f.channel_id = c.id), 0), g.opened_at,
           case when g.circuit = 2 then g.probe_at end, case when g.wait_until > clock_timestamp() then g.wait_until end
      from menzil.channel c
      cross join lateral (select g.* from menzil.gate g where g.channel_id = c.id offset 0) g
      cross join lateral (select count(*) from (select 1 from menzil.ready r where r.channel_id = c.id limit 100000) r) r
      cross join lateral (select count(*) from (select 1 from menzil.scheduled s where s.channel_id = c.id limit 100000) s) s
      cross join lateral (select count(*) from (select 1 from menzil.key_queue k where k.channel_id = c.id and k.place = 1 limit 100000) k) k
      -- The first of each priority, and of those that wait for a time; the ones behind an ordering key are younger than its head.
      cross join lateral (
        select min(m.created_at) as at
          from (select f.id from generate_series(0, 10) n(rank)
                  cross join lateral (select r.id from menzil.ready r where r.channel_id = c.id and r.rank = n.rank order by r.due_at, r.id limit 1) f
                union all
                (select s.id from menzil.scheduled s where s.channel_id = c.id order by s.due_at limit 1)) f
          cross join lateral (select m.created_at from menzil.message m where m.id = f.id offset 0) m) o
     where c.protocol is not null and c.dropped_at is null and (p_name is null or c.name = p_name)
     order by c.name;
end $$;
