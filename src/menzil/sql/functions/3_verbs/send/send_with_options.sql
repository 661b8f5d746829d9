-- Sends a message with everything that a message can carry. Priority 0 to 10, higher first.
create or replace function menzil.send_with_options(
  p_endpoint_name text,
  p_payload jsonb,
  p_priority integer default 0,
  p_scheduled_at timestamptz default null,
  p_idempotency_key text default null,
  p_correlation_id uuid default null,
  p_expires_at timestamptz default null,
  p_ordering_key text default null,
  p_headers jsonb default null,
  p_metadata jsonb default null
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
begin
  return menzil._send(p_endpoint_name, p_payload, null, p_priority, p_scheduled_at, p_idempotency_key, p_correlation_id,
    p_expires_at, p_ordering_key, p_headers, p_metadata);
end $$;
