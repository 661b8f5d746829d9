-- Live messages: pending or processing.
create or replace view menzil.queue as
select m.id,
       case when l.id is null then 'pending' else 'processing' end as status,
       c.name as channel,
       case when c.protocol is not null then c.id end as endpoint_id,
       case when c.protocol is not null then c.name end as endpoint,
       m.payload, m.content, m.payload_hash,
       10 - m.rank as priority,
       m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata, m.scheduled_at, m.next_retry_at, m.expires_at, m.created_at,
       l.leased_at as processing_started_at,
       l.unlock_at,
       coalesce(l.attempt, m.attempts) as num_attempts,
       m.retry_count, m.last_error, m.state, l.worker, m.redrive_of, m.replay_of
  from menzil.message m
  join menzil.channel c on c.id = m.channel_id
  left join menzil.lease l on l.id = m.id;
