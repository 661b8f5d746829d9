-- Sends a message to a channel or endpoint, inside the caller's own transaction. Returns its id.
-- The common case in as few steps as there are; whatever is special, or wrong, goes the long way.
create or replace function menzil.send(p_endpoint_name text, p_payload jsonb) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_generation smallint := menzil._generation(v_now);
  v_channel integer;
  v_max_payload integer;
  v_max_queue bigint;
  v_id bigint;
begin
  select c.id, s.max_payload_size, s.max_queue_size into v_channel, v_max_payload, v_max_queue
    from menzil.channel c, menzil.setting_value s
   where c.name = p_endpoint_name and c.dropped_at is null and c.enabled and c.released_at is null and c.max_size is null;
  if v_channel is null or p_payload is null or octet_length(p_payload::text) > v_max_payload
     or (v_max_queue > 0 and menzil._register('menzil.message_id') - menzil._register('menzil.ended_count') >= v_max_queue) then
    return menzil._send(p_endpoint_name, p_payload, null, 0, null, null, null, null, null, null, null);
  end if;
  v_id := nextval('menzil.message_id');
  insert into menzil.message (id, channel_id, rank, due_at, created_at, payload) values (v_id, v_channel, 10, v_now, v_now, p_payload);
  insert into menzil.ready (channel_id, rank, due_at, id) values (v_channel, 10, v_now, v_id);
  -- Straight into the partition: finding it costs as much as the row.
  if v_generation = 0 then
    insert into menzil.arrival_0 (generation, channel_id, rank, due_at, id) values (0, v_channel, 10, v_now, v_id);
  elsif v_generation = 1 then
    insert into menzil.arrival_1 (generation, channel_id, rank, due_at, id) values (1, v_channel, 10, v_now, v_id);
  elsif v_generation = 2 then
    insert into menzil.arrival_2 (generation, channel_id, rank, due_at, id) values (2, v_channel, 10, v_now, v_id);
  else
    insert into menzil.arrival_3 (generation, channel_id, rank, due_at, id) values (3, v_channel, 10, v_now, v_id);
  end if;
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
  return v_id;
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
