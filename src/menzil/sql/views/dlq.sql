-- Dead letters: the working list. A redriven one stays as its own audit trail.
create or replace view menzil.dlq as
select d.id, d.original_message_id, d.channel_id as endpoint_id, c.name as endpoint_name, c.protocol, d.status, d.failed_at, d.redriven_at, d.redriven_id,
       d.payload, d.content, d.payload_hash, d.priority, d.ordering_key, d.idempotency_key, d.correlation_id, d.headers, d.metadata, d.scheduled_at,
       d.expires_at, d.created_at, d.num_attempts, d.retry_count, d.last_error, d.state, d.redrive_of, d.replay_of, d.blocks_key
  from menzil.dead_letter d join menzil.channel c on c.id = d.channel_id;
