-- Dead letters go back into the queue as new messages: same body, priority, headers, metadata, correlation id and
-- ordering key; no expiry, no idempotency key, no saved state, no retries used. The dead letter stays, as redriven.

-- Every failed dead letter of every channel that takes messages, oldest message first. Returns how many.
create or replace function menzil.redrive_all() returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set jit = off as $$
declare
  v_open integer[] := array(select c.id from menzil.channel c where c.enabled and c.released_at is null and c.dropped_at is null);
  v_ids bigint[];
begin
  v_ids := array(select d.id from menzil.dead_letter d where d.status = 'failed' and d.channel_id = any (v_open) and not menzil._is_erased(d.original_message_id)
                  order by d.created_at, d.original_message_id for update skip locked);
  if v_ids <> '{}' then
    perform menzil._redrive(v_ids);
    perform menzil._event('redrive', 'queue', null, null, null, jsonb_build_object('messages', cardinality(v_ids)));
  end if;
  return cardinality(v_ids);
end $$;

-- Redrives these dead letters, which the caller has locked, in this order, each for its due time; NULL: at once. Returns the ids of
-- the new messages.
drop function if exists menzil._redrive(bigint[]);
create or replace function menzil._redrive(p_ids bigint[], p_dues timestamptz[] default null) returns bigint[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_new bigint[];
  v_heads bigint[];
begin
  perform menzil._check_room_for(array(select d.channel_id from menzil.dead_letter d where d.id = any (p_ids)), s.max_queue_size)
     from menzil.setting_value s;
  v_new := array(select nextval('menzil.message_id') from generate_series(1, cardinality(p_ids)));
  insert into menzil.message (id, channel_id, priority, created_at, scheduled_at, payload, content, ordering_key, correlation_id, headers, metadata, redrive_of)
    select u.new_id, d.channel_id, m.priority, v_now, u.due_at, m.payload, m.content, m.ordering_key, m.correlation_id, m.headers, m.metadata, m.id
      from unnest(p_ids, v_new, p_dues) u(id, new_id, due_at)
      cross join lateral (select d.* from menzil.dead_letter d where d.id = u.id offset 0) d
      cross join lateral (select m.* from menzil.message m where m.id = d.original_message_id and m.created_at = d.created_at offset 0) m;
  perform menzil._note_parents(array_agg(u.new_id), array_agg(d.original_message_id))
     from unnest(p_ids, v_new) u(id, new_id) cross join lateral (select d.original_message_id from menzil.dead_letter d where d.id = u.id offset 0) d;
  -- An ordering key that was blocked changes hands: it is never free on the way, so the new message goes before those
  -- that wait, and alone.
  with blocking as materialized (
    select q.at, u.new_id
      from unnest(p_ids, v_new) u(id, new_id)
      cross join lateral (select d.* from menzil.dead_letter d where d.id = u.id and d.blocks_key offset 0) d
      cross join lateral (select m.ordering_key from menzil.message m where m.id = d.original_message_id and m.created_at = d.created_at offset 0) m
      cross join lateral (select q.ctid as at from menzil.key_queue q
                           where q.channel_id = d.channel_id and q.ordering_key = m.ordering_key and q.waits = 0 and q.id = d.original_message_id offset 0) q
  ), passed as (
    update menzil.key_queue q set id = b.new_id from blocking b where q.ctid = b.at returning q.id
  )
  select array_agg(p.id) into v_heads from passed p;
  update menzil.dead_letter d set status = 'redriven', redriven_at = v_now, redriven_id = u.new_id, blocks_key = false
    from unnest(p_ids, v_new) u(id, new_id) where d.id = u.id;
  perform menzil._place_messages(array(select row(m.id, m.channel_id, (10 - m.priority)::smallint, m.scheduled_at, null, m.ordering_key)::menzil.sent
    from unnest(v_new) u(id) cross join lateral (select m.* from menzil.message m where m.id = u.id and m.created_at = v_now offset 0) m), v_now, v_heads);
  return v_new;
end $$;
