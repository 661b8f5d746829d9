-- Sends a message to a channel or endpoint, inside the caller's own transaction. Returns its id.
-- The common case in as few steps as there are; options and faults go the long way.
select menzil._make_hot('send', $hot$
create or replace function menzil.send(p_endpoint_name text, p_payload jsonb) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_channel integer;
  v_max_payload integer;
  v_max_queue bigint;
  v_id bigint;
begin
  -- The parent is locked before its partition, as ALTER TABLE does it: PostgreSQL reads the bounds of the partition from the parent when
  -- a connection first inserts. A WITH that nothing reads costs the lock and no more.
  with parent as (select from only menzil.message)
  select c.id, s.max_payload_size, s.max_queue_size into v_channel, v_max_payload, v_max_queue
    from menzil.channel c, menzil.setting_value s
   where c.name = p_endpoint_name and c.dropped_at is null and c.enabled and c.released_at is null and c.max_size is null;
  if v_channel is null or p_payload is null or octet_length(p_payload::text) > v_max_payload
     or (v_max_queue > 0 and menzil._register('menzil.message_id') - menzil._register('menzil.ended_count') >= v_max_queue)
     or v_now < {from} or v_now >= {to} then
    return menzil._send(p_endpoint_name, p_payload, null, 0, null, null, null, null, null, null, null);
  end if;
  v_id := nextval('menzil.message_id');
  with body as (   -- one statement for both rows: a statement costs more than a row
    insert into {body} (id, channel_id, priority, created_at, payload) values (v_id, v_channel, 0, v_now, p_payload)
  )
  insert into menzil.line (channel_id, rank, due_at, first_id, n) values (v_channel, 10, v_now, v_id, 1);
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
  return v_id;
end $$
$hot$);

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
