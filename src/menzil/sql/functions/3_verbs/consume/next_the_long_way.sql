-- The long way of message_next: settle, then dequeue, as two calls would.
drop function if exists menzil._next_the_long_way(bigint[], bigint[], bigint, integer, text[], text, boolean, bigint[]);
create or replace function menzil._next_the_long_way(
  p_ids bigint[], p_num_attempts bigint[], p_lock_ms bigint, p_limit integer, p_channels text[], p_worker text, p_endpoints boolean, p_batches bigint[],
  p_except text[]
) returns table (
  id bigint, channel text, content bytea, payload jsonb, state bytea, num_attempts bigint, headers jsonb, correlation_id uuid, metadata jsonb,
  ordering_key text, priority integer, retry_count integer, created_at timestamptz, scheduled_at timestamptz, expires_at timestamptz,
  unlock_at timestamptz, batch bigint, outcome text
)
language plpgsql as $$
begin
  if p_ids is null or p_num_attempts is null or cardinality(p_ids) > 0 or cardinality(p_num_attempts) > 0 then
    return query select o.* from menzil._settle_for_next(p_ids, p_num_attempts, p_batches) o;
  end if;
  return query
    select d.id, d.channel, d.content, d.payload, d.state, d.num_attempts, d.headers, d.correlation_id, d.metadata, d.ordering_key, d.priority,
           d.retry_count, d.created_at, d.scheduled_at, d.expires_at, d.unlock_at, d.batch, null::text
      from menzil.message_dequeue(p_lock_ms, p_limit, p_channels, p_worker, p_endpoints, false, p_except) d;
end $$;
