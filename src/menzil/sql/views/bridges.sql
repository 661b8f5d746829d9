-- Bridges, with marks in place of secrets, what they took, and the processes that run them: those with a heartbeat in the last 30 s.
create or replace view menzil.bridges as
select b.id, b.name, b.protocol, b.config, b.channel, b.event_type, b.paused, b.created_at, b.updated_at,
       p.taken, p.refused, p.lost, p.moved_at, r.processes, r.heartbeat_at, r.lag, r.growing_since, r.last_error
  from menzil.bridge b
  cross join lateral (
    select coalesce(sum(p.taken), 0)::bigint as taken, coalesce(sum(p.refused), 0)::bigint as refused, coalesce(sum(p.lost), 0)::bigint as lost,
           max(p.moved_at) as moved_at
      from menzil.bridge_position p where p.bridge_id = b.id) p
  cross join lateral (
    select count(*) filter (where r.is_alive) as processes, max(r.heartbeat_at) as heartbeat_at, max(r.lag) filter (where r.is_alive) as lag,
           max(r.growing_since) filter (where r.is_alive) as growing_since,
           case when not coalesce(bool_or(r.is_alive and r.last_error is null), false)   -- one that stands by keeps nothing
                then (array_agg(r.last_error order by r.heartbeat_at desc))[1] end as last_error
      from (select r.*, r.stopped_at is null and r.heartbeat_at > clock_timestamp() - interval '30 s' as is_alive,
                   (select sum(l.value::text::numeric)::bigint from jsonb_each(r.lags) l where jsonb_typeof(l.value) = 'number') as lag
              from menzil.bridge_run r where r.bridge_id = b.id) r) r;
