-- Makes a repeating message: at every slot of the cron expression one message is sent. Everything a send would refuse
-- for good is refused here already; what may pass (a full queue, a disabled endpoint) is found out slot by slot.
create or replace function menzil.schedule_create(
  p_name text,
  p_cron text,
  p_time_zone text,
  p_endpoint_name text,
  p_payload jsonb,
  p_priority integer default 0,
  p_ordering_key text default null,
  p_expires_after interval default null,
  p_headers jsonb default null,
  p_metadata jsonb default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_id bigint;
  v_next_at timestamptz;
  v_max_size integer;
begin
  perform menzil._check_name(p_name);
  v_next_at := menzil.cron_next(p_cron, p_time_zone, clock_timestamp());
  if v_next_at is null then
    perform menzil._refuse_value(format('The cron expression %s never comes true.', quote_literal(menzil._shown(p_cron))), 'Name a day that exists in that month.');
  elsif p_payload is null then
    perform menzil._refuse_null('A payload');
  elsif p_priority is null or p_priority not between 0 and 10 then
    perform menzil._refuse_priority(p_priority);
  elsif p_expires_after <= interval '0' or p_expires_after > interval '100 years' then
    perform menzil._refuse_value(format('Messages cannot expire %s after their slot.', p_expires_after), 'Pass a positive interval, or NULL for no expiry.');
  end if;
  perform menzil._channel_for(p_endpoint_name);
  select s.max_payload_size into v_max_size from menzil.setting_value s;
  perform menzil._refuse_size(octet_length(p_payload::text), v_max_size) where octet_length(p_payload::text) > v_max_size;
  perform menzil._check_options(null, null, p_ordering_key, null, p_headers, p_metadata, v_max_size);
  -- Each message gets the name of its schedule and its slot into its metadata.
  perform menzil._check_options(null, null, null, null, null,
    coalesce(p_metadata, '{}') || jsonb_build_object('schedule', p_name, 'slot_at', '2026-01-01T00:00:00Z'), v_max_size);

  insert into menzil.schedule (name, cron, time_zone, endpoint_name, payload, priority, ordering_key, expires_after, headers, metadata, next_at)
    values (p_name, p_cron, p_time_zone, p_endpoint_name, p_payload, p_priority, p_ordering_key, p_expires_after, p_headers, p_metadata, v_next_at)
    on conflict (name) do nothing
    returning id into v_id;
  if v_id is null then
    raise exception using errcode = '42710', message = format('There is already a schedule named %s.', quote_literal(p_name)),
      hint = 'Drop it first with menzil.schedule_drop(name), or choose another name.';
  end if;
  perform menzil._event('schedule.created', 'schedule', p_name, null,
    jsonb_build_object('id', v_id, 'cron', p_cron, 'time_zone', p_time_zone, 'endpoint', p_endpoint_name));
  return v_id;
end $$;
