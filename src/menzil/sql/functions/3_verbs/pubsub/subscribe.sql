-- Lets an endpoint or channel get a copy of every event of this type, or of those whose payload contains the filter.
-- The same subscription twice is one. Returns its id.
create or replace function menzil.subscribe(p_event_type text, p_endpoint_name text, p_filter jsonb default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_channel menzil.channel;
  v_id bigint;
begin
  -- Held to the end: the event type is not dropped meanwhile.
  perform 1 from menzil.event_type t where t.name = p_event_type for key share;
  perform menzil._refuse_unknown_event_type(p_event_type) where not found;
  v_channel := menzil._channel_for(p_endpoint_name);
  if v_channel.released_at is not null then
    perform menzil._refuse_closed(p_endpoint_name, true);
  elsif jsonb_typeof(p_filter) <> 'object' then
    perform menzil._refuse_value('A filter must be a JSON object.', 'Pass what the payload must contain, such as {"country": "TR"}, or NULL for all.');
  elsif octet_length(p_filter::text) > 8192 then
    perform menzil._refuse_value(format('A filter has at most 8192 bytes, this one has %s.', octet_length(p_filter::text)), 'Filter by fewer members.');
  end if;
  loop
    select s.id into v_id from menzil.subscription s
     where s.event_type = p_event_type and s.channel_id = v_channel.id and s.filter is not distinct from p_filter;
    if found then
      return v_id;
    end if;
    insert into menzil.subscription (event_type, channel_id, filter) values (p_event_type, v_channel.id, p_filter)
      on conflict do nothing returning id into v_id;
    exit when found;
  end loop;
  perform menzil._event('subscription.created', 'subscription', v_id::text, null,
    jsonb_build_object('event_type', p_event_type, 'endpoint_name', p_endpoint_name, 'filter', p_filter));
  return v_id;
end $$;

-- Ends one subscription. Returns 1.
create or replace function menzil.unsubscribe(p_subscription_id bigint) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
begin
  if p_subscription_id is null then
    perform menzil._refuse_null('The id of a subscription');
  elsif menzil._end_subscriptions(array[p_subscription_id]) = 0 then
    raise exception using errcode = '42704', message = format('There is no subscription %s.', p_subscription_id),
      hint = 'The view menzil.subscriptions lists them.';
  end if;
  return 1;
end $$;

-- Ends all subscriptions of this endpoint or channel to this event type, with all filters. Returns how many.
create or replace function menzil.unsubscribe(p_event_type text, p_endpoint_name text) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_channel menzil.channel;
begin
  if not exists (select 1 from menzil.event_type t where t.name = p_event_type) then
    perform menzil._refuse_unknown_event_type(p_event_type);
  end if;
  v_channel := menzil._channel_for(p_endpoint_name);
  return menzil._end_subscriptions(array(
    select s.id from menzil.subscription s where s.event_type = p_event_type and s.channel_id = v_channel.id order by s.id));
end $$;

create or replace function menzil._end_subscriptions(p_ids bigint[]) returns integer
language plpgsql as $$
declare
  v_count integer := 0;
  v_gone menzil.subscription;
begin
  for v_gone in delete from menzil.subscription s where s.id = any (p_ids) returning s.* loop
    v_count := v_count + 1;
    perform menzil._event('subscription.dropped', 'subscription', v_gone.id::text,
      jsonb_build_object('event_type', v_gone.event_type, 'endpoint_name', (select c.name from menzil.channel c where c.id = v_gone.channel_id),
        'filter', v_gone.filter), null);
  end loop;
  return v_count;
end $$;
