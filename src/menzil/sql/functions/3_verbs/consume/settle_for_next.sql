-- Completes these tokens and returns those that could not be settled, as rows of message_next.
create or replace function menzil._settle_for_next(p_ids bigint[], p_num_attempts bigint[], p_batches bigint[]) returns table (
  id bigint, channel text, content bytea, payload jsonb, state bytea, num_attempts bigint, headers jsonb, correlation_id uuid, metadata jsonb,
  ordering_key text, priority integer, retry_count integer, created_at timestamptz, scheduled_at timestamptz, expires_at timestamptz,
  unlock_at timestamptz, batch bigint, outcome text
)
language sql as $$
  select o.id, null::text, null::bytea, null::jsonb, null::bytea, null::bigint, null::jsonb, null::uuid, null::jsonb, null::text, null::integer, null::integer, null::timestamptz, null::timestamptz,
         null::timestamptz, null::timestamptz, null::bigint, o.outcome
    from menzil.message_complete(p_ids, p_num_attempts, null, p_batches) o where o.outcome <> 'settled'
$$;
