-- Dead letters: the working list. A redriven one stays as its own audit trail. The body is the message's own. attempts is every
-- try of the message, looked up only when it is selected.
create or replace view menzil.dlq as
select d.id, d.original_message_id, d.channel_id as endpoint_id, c.name as endpoint_name, c.protocol, d.status, d.failed_at, d.redriven_at, d.redriven_id,
       m.payload, m.content, m.payload_hash, m.priority, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata, m.scheduled_at,
       m.expires_at, d.created_at, d.num_attempts, coalesce(r.retry_count, 0) as retry_count, d.last_error, r.state, m.redrive_of, m.replay_of, d.blocks_key,
       (select coalesce(jsonb_agg(jsonb_build_object(
                 'attempt', t.attempt, 'outcome', t.outcome, 'leased_at', t.leased_at, 'ended_at', t.ended_at, 'worker', t.worker,
                 'duration_ms', case when jsonb_typeof(t.response -> 'duration_ms') = 'number' then t.response -> 'duration_ms'
                                     else to_jsonb(round(extract(epoch from t.ended_at - t.leased_at) * 1000, 3)) end,
                 'status', t.response -> 'status', 'error', t.error, 'response', t.response) order by t.attempt), '[]')
          from menzil.attempt t where t.message_id = d.original_message_id) as attempts,
       d.cause, d.cause_hash
  from menzil.dead_letter d
  join menzil.channel c on c.id = d.channel_id
  left join menzil.message m on m.id = d.original_message_id and m.created_at = d.created_at
  left join menzil.returned r on r.id = d.original_message_id;
