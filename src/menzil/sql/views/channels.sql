-- Channels with their limits and how they stand. in_flight is counted only where a concurrency limit asks for it.
create or replace view menzil.channels as
select c.id, c.name, c.protocol is not null as is_endpoint, c.enabled, c.paused, c.released_at is not null as released,
       c.max_concurrency, c.max_size, c.release_interval_ms, c.release_count, c.on_dead,
       case when c.max_concurrency is not null then g.in_flight end as in_flight,
       c.created_at, c.updated_at
  from menzil.channel c left join menzil.gate g on g.channel_id = c.id
 where c.dropped_at is null;
