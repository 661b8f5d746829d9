-- Dead letters: the working list. A redriven one stays as its own audit trail. attempts is every try of the message, looked
-- up only when it is selected.
create or replace view menzil.dlq as
select d.id, d.original_message_id, d.channel_id as endpoint_id, c.name as endpoint_name, c.protocol, d.status, d.failed_at, d.redriven_at, d.redriven_id,
       d.payload, d.content, d.payload_hash, d.priority, d.ordering_key, d.idempotency_key, d.correlation_id, d.headers, d.metadata, d.scheduled_at,
       d.expires_at, d.created_at, d.num_attempts, d.retry_count, d.last_error, d.state, d.redrive_of, d.replay_of, d.blocks_key,
       (select coalesce(jsonb_agg(jsonb_build_object(
                 'attempt', t.attempt, 'outcome', t.outcome, 'leased_at', t.leased_at, 'ended_at', t.ended_at, 'worker', t.worker,
                 'duration_ms', case when jsonb_typeof(t.response -> 'duration_ms') = 'number' then t.response -> 'duration_ms'
                                     else to_jsonb(round(extract(epoch from t.ended_at - t.leased_at) * 1000, 3)) end,
                 'status', t.response -> 'status', 'error', t.error, 'response', t.response) order by t.attempt), '[]')
          from menzil.attempt t where t.message_id = d.original_message_id) as attempts
  from menzil.dead_letter d join menzil.channel c on c.id = d.channel_id;
