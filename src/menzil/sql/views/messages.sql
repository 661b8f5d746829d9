-- All messages with their state, for menzil message list: read from the newest on, without looking at the whole queue. The
-- leases are read once for all messages. bytes is what the body takes in the table.
create or replace view menzil._messages as
select m.id, coalesce(d.status, case when l.flies then 'processing' else 'pending' end) as status, c.name as channel, m.priority::integer as priority,
       m.ordering_key, m.correlation_id,
       coalesce(d.attempt, case when l.flies then (select l.attempt from menzil.lease l where l.lo_id <= m.id and l.hi_id >= m.id and (l.ids is null or m.id = any (l.ids)) limit 1) end,
                r.attempts, 0) as num_attempts,
       coalesce(r.retry_count, 0) as retry_count, m.created_at, d.ended_at, r.last_error,
       m.idempotency_key, coalesce(octet_length(m.content), pg_column_size(m.payload), 0) as bytes
  from menzil.message m
  cross join lateral (select c.name from menzil.channel c where c.id = m.channel_id offset 0) c
  left join lateral (
    select d.status, d.attempt, d.ended_at from menzil.done d
     where d.lo_id > m.id - 4096 and d.lo_id <= m.id and d.hi_id >= m.id and (d.ids is null or m.id = any (d.ids)) order by d.lo_id desc limit 1) d on true
  cross join lateral (select d.status is null and m.id in (select unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) from menzil.lease l) as flies offset 0) l
  left join lateral (select r.* from menzil.returned r where r.id = m.id offset 0) r on true;
