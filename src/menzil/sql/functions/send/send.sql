-- Sends a message to a channel or endpoint, inside the caller's own transaction. Returns its id.
create or replace function menzil.send(p_endpoint_name text, p_payload jsonb) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
begin
  return menzil._send(p_endpoint_name, p_payload, null, 0, null, null, null, null, null, null, null);
end $$;

-- The same with everything a message can carry. Priority 0 to 10, higher first.
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

-- A binary body on a channel. A dequeue time in the past jumps the line inside the channel.
create or replace function menzil.message_create(p_channel text, p_content bytea, p_dequeue_at timestamptz default null) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
begin
  return menzil._send(p_channel, null, p_content, 0, p_dequeue_at, null, null, null, null, null, null);
end $$;

-- Commits of this transaction do not wait for the disk: faster, and a crash of the server may lose what was sent
-- in the last moments (up to three times wal_writer_delay) although its commit was reported.
create or replace function menzil.enable_fast_mode() returns void
language plpgsql as $$
begin
  perform set_config('synchronous_commit', 'off', true);
end $$;
