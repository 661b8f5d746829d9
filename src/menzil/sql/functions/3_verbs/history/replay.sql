-- Ended messages are sent once more, as new messages: same body, priority, headers, metadata, correlation id and ordering
-- key; no expiry, no idempotency key, no saved state. The archive stays as it is.

-- One message, by its id. Returns the id of the new one.
create or replace function menzil.replay_message(p_id bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_channel menzil.channel;
  v_now timestamptz := clock_timestamp();
  v_new bigint;
begin
  perform menzil._check_known(p_id);
  select c.* into v_channel from menzil.archive a cross join lateral (select c.* from menzil.channel c where c.id = a.endpoint_id offset 0) c
   where a.id = p_id limit 1;
  if not found then
    raise exception using errcode = '55000', message = format('Message %s has not ended yet.', p_id),
      hint = 'Only messages of the archive can be replayed; menzil.message_status(id) tells where it stands.';
  end if;
  perform menzil._check_open(v_channel);
  perform menzil._refuse_erased(p_id);
  perform menzil._check_room_for(array[v_channel.id], s.max_queue_size) from menzil.setting_value s;
  v_new := nextval('menzil.message_id');
  insert into menzil.message (id, channel_id, priority, created_at, payload, content, ordering_key, correlation_id, headers, metadata, replay_of)
    select v_new, m.channel_id, m.priority, v_now, m.payload, m.content, m.ordering_key, m.correlation_id, m.headers, m.metadata, m.id
      from menzil.message m where m.id = p_id limit 1;
  perform menzil._note_parents(array[v_new], array[p_id]);
  perform menzil._place_messages(array(select row(m.id, m.channel_id, (10 - m.priority)::smallint, null, null, m.ordering_key)::menzil.sent
    from menzil.message m where m.id = v_new and m.created_at = v_now), v_now);
  perform menzil._event('replay', 'message', p_id::text, null, null,
    jsonb_build_object('endpoint', v_channel.name, 'replay_id', v_new, 'messages', 1));
  return v_new;
end $$;

-- The messages of a channel or endpoint that were created in [p_from_ts, p_to_ts) and ended, with p_status only those that
-- ended so, in the order they were created in. With p_rate, so many become due per second from now on. A dry run counts.
create or replace function menzil.replay_range(
  p_endpoint_id bigint, p_from_ts timestamptz, p_to_ts timestamptz, p_status text default null, p_dry_run boolean default false,
  p_rate double precision default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set jit = off as $$
declare
  v_known constant text[] := '{completed,failed,expired,cancelled}';
  v_channel menzil.channel;
  v_now timestamptz := clock_timestamp();
  v_count bigint;
  v_sent menzil.sent[];
  v_new bigint[];
  v_parents bigint[];
begin
  if p_endpoint_id is null or p_from_ts is null or p_to_ts is null or p_dry_run is null then
    perform menzil._refuse_null('An endpoint id, the two ends of the range and whether it is a dry run');
  elsif p_from_ts not between '0001-01-01' and '9999-12-31' or p_to_ts not between '0001-01-01' and '9999-12-31' then
    perform menzil._refuse_value('A range of the archive lies in the years 1 to 9999.', 'Use finite times.');
  elsif p_from_ts >= p_to_ts then
    perform menzil._refuse_value('The range ends before it begins.', 'p_from_ts is part of the range, p_to_ts is not; give a later p_to_ts.');
  elsif p_status <> all (v_known) then
    perform menzil._refuse_value(format('%s is not a status of the archive.', quote_literal(menzil._shown(p_status))),
      concat_ws(' ', 'Did you mean ' || menzil._nearest_word(p_status, v_known) || '?', format('Use %s, or NULL for all.', array_to_string(v_known, ', '))));
  elsif not (p_rate > 0 and p_rate <= 1000000) then   -- NaN is greater than everything
    perform menzil._refuse_value('A rate must be more than 0 and at most 1000000 messages per second.', 'Leave the rate out to replay all at once.');
  end if;
  select c.* into v_channel from menzil.channel c where c.id = p_endpoint_id;
  if not found then
    raise exception using errcode = '42704', message = format('There is no channel or endpoint with the id %s.', p_endpoint_id),
      hint = 'The views menzil.endpoints and menzil.channels list the ids.';
  end if;
  perform menzil._check_open(v_channel);
  -- The range prunes partitions.
  select count(*) into v_count from menzil.archive a
   where a.endpoint_id = v_channel.id and a.created_at >= p_from_ts and a.created_at < p_to_ts and (p_status is null or a.status = p_status)
     and (a.payload is not null or a.content is not null);   -- not erased
  if p_dry_run or v_count = 0 then
    return v_count;
  elsif v_count > p_rate * 315360000 then
    perform menzil._refuse_value(format('At that rate %s messages would take more than ten years.', v_count), 'Give a higher rate, or a shorter range.');
  end if;
  perform menzil._check_room(v_count, s.max_queue_size) from menzil.setting_value s;
  if v_channel.max_size is not null then
    perform menzil._check_channel_room(v_channel.id, v_channel.name, v_count, v_channel.max_size);
  end if;
  with sent as (
    insert into menzil.message (id, channel_id, priority, scheduled_at, created_at, payload, content, ordering_key, correlation_id, headers, metadata,
        replay_of)
      select nextval('menzil.message_id'), v_channel.id, a.priority, v_now + a.n / p_rate * interval '1 s', v_now, a.payload, a.content, a.ordering_key, a.correlation_id, a.headers, a.metadata, a.id
        from (select row_number() over (order by a.created_at, a.id) as n, a.* from menzil.archive a
               where a.endpoint_id = v_channel.id and a.created_at >= p_from_ts and a.created_at < p_to_ts and (p_status is null or a.status = p_status)
                 and (a.payload is not null or a.content is not null)
               order by a.created_at, a.id) a
    returning message.id, message.channel_id, message.priority, message.scheduled_at, message.ordering_key, message.replay_of
  )
  select array_agg(row(s.id, s.channel_id, (10 - s.priority)::smallint, s.scheduled_at, null, s.ordering_key)::menzil.sent), array_agg(s.id), array_agg(s.replay_of)
    into v_sent, v_new, v_parents from sent s;
  perform menzil._note_parents(v_new, v_parents);
  v_count := coalesce(cardinality(v_sent), 0);
  perform menzil._place_messages(v_sent, v_now);
  perform menzil._event('replay', case when v_channel.protocol is null then 'channel' else 'endpoint' end, v_channel.name, null, null,
    jsonb_strip_nulls(jsonb_build_object('messages', v_count, 'from', p_from_ts, 'to', p_to_ts, 'status', p_status, 'rate', p_rate)));
  return v_count;
end $$;
