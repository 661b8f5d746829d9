-- One message with everything, live or ended, for readers that have its id: what menzil.queue and menzil.archive show, without a
-- look at the other messages of its lane.
create or replace view menzil._message_in_full as
select m.id, coalesce(d.status, case when l.attempt is not null then 'processing' else 'pending' end) as status, c.name as channel, m.payload, m.content,
       m.priority::integer as priority, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata, m.created_at, m.scheduled_at,
       case when d.status is null and l.attempt is null then r.due_at end as next_retry_at, m.expires_at,
       case when d.status is null then l.leased_at else d.leased_at end as leased_at, l.unlock_at, d.ended_at,
       coalesce(d.attempt, l.attempt, r.attempts, 0) as num_attempts, coalesce(r.retry_count, 0) as retry_count,
       case when d.status is null then l.worker else d.worker end as worker, r.last_error, m.redrive_of, m.replay_of, r.state,
       case when d.responses is not null then d.responses[coalesce(array_position(d.ids, m.id), (m.id - d.lo_id + 1)::integer)] end as response
  from menzil.message m
  cross join lateral (select c.name from menzil.channel c where c.id = m.channel_id offset 0) c
  left join lateral (
    select d.status, d.attempt, d.leased_at, d.ended_at, d.worker, d.responses, d.ids, d.lo_id from menzil.done d
     where d.lo_id > m.id - 4096 and d.lo_id <= m.id and d.hi_id >= m.id and (d.ids is null or m.id = any (d.ids)) order by d.lo_id desc limit 1) d on true
  left join lateral (
    select l.attempt, l.leased_at, l.unlock_at, l.worker from menzil.lease l
     where d.status is null and l.lo_id <= m.id and l.hi_id >= m.id and (l.ids is null or m.id = any (l.ids)) limit 1) l on true
  left join lateral (select r.* from menzil.returned r where r.id = m.id offset 0) r on true;
