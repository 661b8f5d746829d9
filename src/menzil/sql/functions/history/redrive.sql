-- Dead letters go back into the queue as new messages: same body, priority, headers, metadata, correlation id and
-- ordering key; no expiry, no idempotency key, no saved state, no retries used. The dead letter stays, as redriven.

-- One dead letter, by its id in menzil.dlq. Returns the id of the new message.
create or replace function menzil.redrive_message(p_dlq_id bigint) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_dead record;
  v_channel menzil.channel;
  v_new bigint;
begin
  if p_dlq_id is null then
    perform menzil._refuse_null('The id of a dead letter');
  end if;
  -- Waits for somebody who redrives it at this moment, and then sees that it was done.
  select d.status, d.redriven_id, d.channel_id, d.original_message_id into v_dead from menzil.dead_letter d where d.id = p_dlq_id for update;
  if not found then
    raise exception using errcode = '42704', message = format('There is no dead letter %s.', p_dlq_id),
      hint = 'Use an id of the view menzil.dlq, not that of the message; old ones are cleaned up.';
  elsif v_dead.status <> 'failed' then
    raise exception using errcode = '55000', message = format('Dead letter %s was redriven already, as message %s.', p_dlq_id, v_dead.redriven_id),
      hint = 'If that message died too, it has a dead letter of its own in menzil.dlq.';
  end if;
  select c.* into v_channel from menzil.channel c where c.id = v_dead.channel_id;
  perform menzil._check_open(v_channel);
  v_new := (menzil._redrive(array[p_dlq_id]))[1];
  perform menzil._event('redrive', 'message', v_dead.original_message_id::text, null, null,
    jsonb_build_object('dlq_id', p_dlq_id, 'endpoint', v_channel.name, 'redriven_id', v_new, 'messages', 1));
  return v_new;
end $$;

-- Every failed dead letter of an endpoint or channel, oldest message first; with p_cause only those of this cause, as
-- menzil.dlq_causes words it; at most p_limit. Returns how many.
create or replace function menzil.redrive_endpoint(p_name text, p_cause text default null, p_limit integer default null) returns integer
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_channel menzil.channel;
  v_ids bigint[];
begin
  -- The one that is there, or the last that was.
  select c.* into v_channel from menzil.channel c where c.name = p_name order by c.dropped_at desc nulls first limit 1;
  if not found then
    perform menzil._refuse_unknown(p_name);
  end if;
  perform menzil._check_open(v_channel);
  if p_limit < 1 then
    perform menzil._refuse_value(format('A limit of %s is out of range, it must be 1 or more.', p_limit), 'Leave the limit out to redrive all.');
  end if;
  -- What somebody else is redriving at this moment is his.
  v_ids := array(select d.id from menzil.dead_letter d
                  where d.channel_id = v_channel.id and d.status = 'failed' and (p_cause is null or menzil._error_cause(d.last_error) = p_cause)
                  order by d.created_at, d.original_message_id limit p_limit for update skip locked);
  if v_ids <> '{}' then
    perform menzil._redrive(v_ids);
    perform menzil._event('redrive', case when v_channel.protocol is null then 'channel' else 'endpoint' end, p_name, null, null,
      jsonb_strip_nulls(jsonb_build_object('messages', cardinality(v_ids), 'cause', p_cause)));
  end if;
  return cardinality(v_ids);
end $$;

-- Every failed dead letter of every channel that takes messages, oldest message first. Returns how many.
create or replace function menzil.redrive_all() returns integer
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set jit = off as $$
declare
  v_open integer[] := array(select c.id from menzil.channel c where c.enabled and c.released_at is null and c.dropped_at is null);
  v_ids bigint[];
begin
  v_ids := array(select d.id from menzil.dead_letter d where d.status = 'failed' and d.channel_id = any (v_open)
                  order by d.created_at, d.original_message_id for update skip locked);
  if v_ids <> '{}' then
    perform menzil._redrive(v_ids);
    perform menzil._event('redrive', 'queue', null, null, null, jsonb_build_object('messages', cardinality(v_ids)));
  end if;
  return cardinality(v_ids);
end $$;

-- Redrives these dead letters, which the caller has locked, in this order. Returns the ids of the new messages.
create or replace function menzil._redrive(p_ids bigint[]) returns bigint[]
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_new bigint[];
begin
  perform menzil._check_room_for(array(select d.channel_id from menzil.dead_letter d where d.id = any (p_ids)), s.max_queue_size)
     from menzil.setting_value s;
  v_new := array(select nextval('menzil.message_id') from generate_series(1, cardinality(p_ids)));
  insert into menzil.message (id, channel_id, rank, due_at, created_at, payload, content, ordering_key, correlation_id, headers, metadata, redrive_of)
    select u.new_id, d.channel_id, 10 - d.priority, v_now, v_now, d.payload, d.content, d.ordering_key, d.correlation_id, d.headers, d.metadata,
           d.original_message_id
      from unnest(p_ids, v_new) u(id, new_id)
      cross join lateral (select d.* from menzil.dead_letter d where d.id = u.id offset 0) d;
  -- An ordering key that was blocked changes hands: it is never free on the way, so the new message goes before those
  -- that wait, and alone.
  with blocking as materialized (
    select q.at, u.new_id
      from unnest(p_ids, v_new) u(id, new_id)
      cross join lateral (select d.* from menzil.dead_letter d where d.id = u.id and d.blocks_key offset 0) d
      cross join lateral (select q.ctid as at from menzil.key_queue q
                           where q.channel_id = d.channel_id and q.ordering_key = d.ordering_key and q.place = 0 and q.id = d.original_message_id offset 0) q
  )
  update menzil.key_queue q set id = b.new_id from blocking b where q.ctid = b.at;
  update menzil.dead_letter d set status = 'redriven', redriven_at = v_now, redriven_id = u.new_id, blocks_key = false
    from unnest(p_ids, v_new) u(id, new_id) where d.id = u.id;
  perform menzil._place_messages(v_new, v_now);
  return v_new;
end $$;
