-- Ended messages, for readers that begin with messages: by id, by time of creation, by channel. Each costs one probe for its
-- end. Readers that begin with the time of the end use menzil.feed_between, readers of whole months menzil.archive_between.
create or replace view menzil.archive as
select m.id, d.status, c.name as channel, m.channel_id as endpoint_id, m.priority, d.attempt as num_attempts, coalesce(r.retry_count, 0) as retry_count,
       m.created_at, m.scheduled_at, m.expires_at, coalesce(r.first_leased_at, d.leased_at) as first_leased_at, d.leased_at, d.ended_at, d.ended_xid,
       d.worker, m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata, r.last_error, r.state,
       m.redrive_of, m.replay_of,
       case when d.responses is not null then d.responses[coalesce(array_position(d.ids, m.id), (m.id - d.lo_id + 1)::integer)] end as response
  from menzil.message m
  cross join lateral (
    select d.* from menzil.done d where d.lo_id > m.id - 4096 and d.lo_id <= m.id and d.hi_id >= m.id and (d.ids is null or m.id = any (d.ids))
     order by d.lo_id desc limit 1) d
  join menzil.channel c on c.id = m.channel_id
  left join menzil.returned r on r.id = m.id;
select menzil._ensure_archive_months(clock_timestamp(), 3);
select menzil._renew_hot(h.name, clock_timestamp()) from menzil.hot_function h;
