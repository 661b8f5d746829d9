-- Channels with their limits and how they stand. in_flight is counted only where a concurrency limit asks for it, by the leases
-- of the channel: a gate learns of a settle with the next dequeue.
create or replace view menzil.channels as
select c.id, c.name, c.protocol is not null as is_endpoint, c.enabled, c.paused, c.released_at is not null as released,
       c.max_concurrency, c.max_size, c.release_interval_ms, c.release_count, c.on_dead,
       case when c.max_concurrency is not null then (coalesce(f.count, 0)
         -- Leases from before the channel had a limit do not name it.
         + (select count(*) from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) u(id)
              cross join lateral (   -- by a range and LIMIT 1: see menzil.queue
                select m.channel_id from menzil.message m where m.id between u.id and u.id order by m.id limit 1) m
             where m.channel_id = c.id and l.channel_id is null and l.leased_at < g.counts_from))::integer end as in_flight,
       c.created_at, c.updated_at
  from menzil.channel c
  left join menzil.gate g on g.channel_id = c.id
  left join (select l.channel_id, sum(coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1)) as count from menzil.lease l group by l.channel_id) f on f.channel_id = c.id
 where c.dropped_at is null;
