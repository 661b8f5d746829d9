-- One message into the queue: the body, and a line in the log. Insert only: it locks no row that another transaction could
-- want, so open business transactions never wait for each other. The one exception is inherent: a second open transaction
-- with the same idempotency key waits for the first. The key of an expired message that waits asks for the lane of that message,
-- for a moment and at most 50 ms: see menzil._take_key.
create or replace function menzil._send(
  p_name text, p_payload jsonb, p_content bytea, p_priority integer, p_scheduled_at timestamptz, p_idempotency_key text,
  p_correlation_id uuid, p_expires_at timestamptz, p_ordering_key text, p_headers jsonb, p_metadata jsonb,
  p_redrive_of bigint default null, p_replay_of bigint default null
) returns bigint
language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_channel integer;
  v_open boolean;
  v_released boolean;
  v_max_size bigint;
  v_max_payload integer;
  v_max_queue bigint;
  v_size bigint;
  v_id bigint;
  v_other bigint;
  v_rank smallint;
  v_flags smallint;
  v_due timestamptz := coalesce(p_scheduled_at, v_now);
  v_hash text;
begin
  select c.id, c.enabled and c.released_at is null, c.released_at is not null, c.max_size, s.max_payload_size, s.max_queue_size
    into v_channel, v_open, v_released, v_max_size, v_max_payload, v_max_queue
    from menzil.channel c, menzil.setting_value s
   where c.name = p_name and c.dropped_at is null;
  if v_channel is null then
    perform menzil._refuse_unknown(p_name);
  elsif not v_open then
    perform menzil._refuse_closed(p_name, v_released);
  elsif p_payload is null and p_content is null then
    perform menzil._refuse_null('A payload');
  elsif p_priority is null or p_priority < 0 or p_priority > 10 then
    perform menzil._refuse_priority(p_priority);
  end if;
  v_size := case when p_content is null then octet_length(p_payload::text) else octet_length(p_content) end;
  if v_size > v_max_payload then
    perform menzil._refuse_size(v_size, v_max_payload);
  end if;
  -- One test for all that most messages do not have.
  if coalesce(p_scheduled_at, p_expires_at) is not null or coalesce(p_ordering_key, p_idempotency_key) is not null
     or coalesce(p_headers, p_metadata) is not null then
    perform menzil._check_options(p_scheduled_at, p_expires_at, p_ordering_key, p_idempotency_key, p_headers, p_metadata, v_max_payload);
    if p_idempotency_key is not null then
      v_hash := menzil._payload_hash(p_payload, p_content);
      v_other := menzil._holder_of_key(v_channel, p_idempotency_key, v_hash);   -- a repeat is answered also when there is no room
      if v_other is not null then
        return v_other;
      end if;
    end if;
  end if;
  if v_max_queue > 0 and menzil._register('menzil.message_id') - menzil._register('menzil.ended_count') >= v_max_queue then
    perform menzil._check_room(1, v_max_queue);
  end if;
  if v_max_size is not null then
    perform menzil._check_channel_room(v_channel, p_name, 1, v_max_size);
  end if;

  v_id := nextval('menzil.message_id');
  v_rank := 10 - p_priority;
  if p_idempotency_key is not null then
    v_other := menzil._take_key(v_channel, p_idempotency_key, v_id, v_hash, v_now);
    if v_other <> v_id then
      return v_other;
    end if;
  end if;
  insert into menzil.message (id, channel_id, priority, created_at, scheduled_at, expires_at, payload, content, ordering_key, idempotency_key,
      payload_hash, correlation_id, headers, metadata, redrive_of, replay_of)
    values (v_id, v_channel, p_priority, v_now, p_scheduled_at, p_expires_at, p_payload, p_content, p_ordering_key, p_idempotency_key,
      v_hash, p_correlation_id, p_headers, p_metadata, p_redrive_of, p_replay_of);
  v_flags := case when p_scheduled_at is not null then 1 else 0 end | case when p_expires_at is not null then 2 else 0 end
           | case when p_ordering_key is not null then 4 else 0 end;
  if v_due > v_now then
    insert into menzil.scheduled (due_at, id, channel_id, rank, place_at, flags, ordering_key) values (v_due, v_id, v_channel, v_rank, v_due, v_flags, p_ordering_key);
  elsif p_ordering_key is null then
    insert into menzil.line (channel_id, rank, due_at, first_id, n, flags) values (v_channel, v_rank, v_due, v_id, 1, v_flags);
  else
    insert into menzil.key_queue (channel_id, ordering_key, waits, id) values (v_channel, p_ordering_key, 1, v_id);
    insert into menzil.line (channel_id, ordering_key) values (v_channel, p_ordering_key);
  end if;
  if p_expires_at is not null then
    insert into menzil.expiring (expires_at, id, created_at) values (p_expires_at, v_id, v_now);
  end if;
  if v_max_size is not null then
    perform menzil._change_size(v_channel, 1);
  end if;
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
  return v_id;
end $$;
