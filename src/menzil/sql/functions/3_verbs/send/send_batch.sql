-- Many payloads to one channel or endpoint in one call. Ids come back in payload order.
create or replace function menzil.send_batch(p_endpoint_name text, p_payloads jsonb[]) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
begin
  return menzil._send_batch(p_endpoint_name, p_payloads, 0);
end $$;

create or replace function menzil.send_batch_with_priority(p_endpoint_name text, p_payloads jsonb[], p_priority integer) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
begin
  return menzil._send_batch(p_endpoint_name, p_payloads, p_priority);
end $$;

create or replace function menzil._send_batch(p_name text, p_payloads jsonb[], p_priority integer) returns bigint[]
language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_channel integer;
  v_open boolean;
  v_released boolean;
  v_max_size bigint;
  v_max_payload integer;
  v_max_queue bigint;
  v_count integer := cardinality(p_payloads);
  v_given integer;
  v_largest bigint;
  v_rank smallint;
  v_ids bigint[];
begin
  select c.id, c.enabled and c.released_at is null, c.released_at is not null, c.max_size, s.max_payload_size, s.max_queue_size
    into v_channel, v_open, v_released, v_max_size, v_max_payload, v_max_queue
    from menzil.channel c, menzil.setting_value s
   where c.name = p_name and c.dropped_at is null;
  if v_channel is null then
    perform menzil._refuse_unknown(p_name);
  elsif not v_open then
    perform menzil._refuse_closed(p_name, v_released);
  elsif v_count is null then
    perform menzil._refuse_null('An array of payloads');
  elsif p_priority is null or p_priority < 0 or p_priority > 10 then
    perform menzil._refuse_priority(p_priority);
  elsif v_count = 0 then
    return '{}';
  end if;
  select count(u.payload), max(octet_length(u.payload::text)) into v_given, v_largest from (select unnest(p_payloads) as payload) u;
  if v_given < v_count then
    perform menzil._refuse_null('Each payload');
  elsif v_largest > v_max_payload then
    perform menzil._refuse_size(v_largest, v_max_payload);
  end if;
  perform menzil._check_room(v_count, v_max_queue);
  if v_max_size is not null then
    perform menzil._check_channel_room(v_channel, p_name, v_count, v_max_size);
    perform menzil._change_size(v_channel, v_count);
  end if;

  v_rank := 10 - p_priority;
  v_ids := array(select nextval('menzil.message_id') from (select generate_series(1, v_count)) g);
  insert into menzil.message (id, channel_id, priority, created_at, payload)
    select u.id, v_channel, p_priority, v_now, u.payload from (select unnest(v_ids) as id, unnest(p_payloads) as payload) u;
  perform menzil._tell(v_channel, v_rank, v_now, v_ids, 0::smallint);
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
  return v_ids;
end $$;
