-- Sends an event to every channel that has subscribed to it, inside the caller's own transaction. Returns the number of
-- messages that stand for it: new ones, and those its idempotency key holds already.
-- The whole fan-out is one send_many, which counts it against every limit before its first insert. Subscriptions are
-- only read, none is locked: a publish never waits for a transaction that changes them.
create or replace function menzil.publish(
  p_event_type text,
  p_payload jsonb,
  p_priority integer default 0,
  p_scheduled_at timestamptz default null,
  p_idempotency_key text default null,
  p_correlation_id uuid default null,
  p_expires_at timestamptz default null,
  p_ordering_key text default null,
  p_headers jsonb default null,
  p_metadata jsonb default null
) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_schema jsonb;
  v_most integer;
  v_channels text[];
  v_copies integer[];
begin
  select t.schema #> '{}', s.max_payload_size into v_schema, v_most from menzil.event_type t, menzil.setting_value s where t.name = p_event_type;
  if v_most is null then
    perform menzil._refuse_unknown_event_type(p_event_type);
  elsif p_payload is null then
    perform menzil._refuse_null('A payload');
  elsif p_priority is null or p_priority not between 0 and 10 then
    perform menzil._refuse_priority(p_priority);
  elsif octet_length(p_payload::text) > v_most then
    perform menzil._refuse_size(octet_length(p_payload::text), v_most);
  end if;
  -- Here and not only in send_many: a wrong payload is refused also while there is no subscription.
  if coalesce(p_scheduled_at, p_expires_at) is not null or coalesce(p_ordering_key, p_idempotency_key) is not null
     or coalesce(p_headers, p_metadata) is not null then
    perform menzil._check_options(p_scheduled_at, p_expires_at, p_ordering_key, p_idempotency_key, p_headers, p_metadata, v_most);
  end if;
  if v_schema is not null then
    perform menzil._check_event(p_event_type, v_schema, p_payload);
  end if;
  v_channels := array(
    select distinct c.name
      from (select s.channel_id from menzil.subscription s where s.event_type = p_event_type and (s.filter is null or p_payload @> s.filter) offset 0) s
      cross join lateral (select c.name from menzil.channel c
                           where c.id = s.channel_id and c.enabled and c.released_at is null and c.dropped_at is null offset 0) c);
  if v_channels = '{}' then
    return 0;
  end if;
  v_copies := array[cardinality(v_channels)];
  return cardinality(menzil.send_many(v_channels, array_fill(p_payload, v_copies), array_fill(p_priority, v_copies),
    case when p_scheduled_at is not null then array_fill(p_scheduled_at, v_copies) end,
    case when p_idempotency_key is not null then array_fill(p_idempotency_key, v_copies) end,
    case when p_correlation_id is not null then array_fill(p_correlation_id, v_copies) end,
    case when p_expires_at is not null then array_fill(p_expires_at, v_copies) end,
    case when p_ordering_key is not null then array_fill(p_ordering_key, v_copies) end,
    case when p_headers is not null then array_fill(p_headers, v_copies) end,
    array_fill(coalesce(p_metadata, '{}') || jsonb_build_object('event_type', p_event_type), v_copies)));
end $$;
