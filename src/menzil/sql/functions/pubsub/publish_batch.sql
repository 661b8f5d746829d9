-- Many events, all or none, each with its own options; a word that is not an option is refused, not ignored.
create or replace function menzil.publish_batch(p_events jsonb[]) returns integer
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_many record;
  v_wrong text;
begin
  if p_events is null then
    perform menzil._refuse_null('An array of events');
  elsif cardinality(p_events) > 10000 then
    perform menzil._refuse_value(format('A batch has at most 10000 events, this one has %s.', cardinality(p_events)), 'Publish several batches in one transaction.');
  elsif exists (select 1 from unnest(p_events) e(o) where e.o is null) then
    perform menzil._refuse_null('Each event');
  elsif exists (select 1 from unnest(p_events) e(o) where jsonb_typeof(e.o) <> 'object') then
    perform menzil._refuse_value('Each event must be a JSON object.', 'Pass array[''{"event_type": "name", "payload": {}}'', ...]::jsonb[].');
  elsif p_events = '{}' then
    return 0;
  end if;
  select k.key into v_wrong from unnest(p_events) e(o), jsonb_object_keys(e.o) k(key)
   where k.key not in ('event_type', 'payload', 'priority', 'scheduled_at', 'idempotency_key', 'correlation_id', 'expires_at',
                       'ordering_key', 'headers', 'metadata') limit 1;
  if found then
    perform menzil._refuse_value(format('An event has no option %s.', quote_literal(menzil._shown(v_wrong))),
      'Use event_type, payload, priority, scheduled_at, idempotency_key, correlation_id, expires_at, ordering_key, headers, metadata.');
  end if;
  begin   -- only reads: the sends below run in no subtransaction
    select array_agg(e.o ->> 'event_type' order by e.n) as types,
           array_agg(e.o -> 'payload' order by e.n) as payloads,
           array_agg(coalesce((e.o ->> 'priority')::integer, 0) order by e.n) as priorities,
           array_agg((e.o ->> 'scheduled_at')::timestamptz order by e.n) as scheduled_ats,
           array_agg(e.o ->> 'idempotency_key' order by e.n) as idempotency_keys,
           array_agg((e.o ->> 'correlation_id')::uuid order by e.n) as correlation_ids,
           array_agg((e.o ->> 'expires_at')::timestamptz order by e.n) as expires_ats,
           array_agg(e.o ->> 'ordering_key' order by e.n) as ordering_keys,
           array_agg(nullif(e.o -> 'headers', 'null') order by e.n) as headers,
           array_agg(nullif(e.o -> 'metadata', 'null') order by e.n) as metadatas
      into v_many from unnest(p_events) with ordinality e(o, n);
  exception when data_exception then
    perform menzil._refuse_value(format('An option has the wrong type: %s.', menzil._shown(sqlerrm)),
      'Give priority a whole number, times as ISO 8601, ids as UUID.');
  end;
  return menzil._publish(v_many.types, v_many.payloads, v_many.priorities, v_many.scheduled_ats, v_many.idempotency_keys, v_many.correlation_ids,
    v_many.expires_ats, v_many.ordering_keys, v_many.headers, v_many.metadatas);
end $$;

-- The same as menzil.publish for many events at once, in one send_many over all of them.
create or replace function menzil._publish(
  p_types text[], p_payloads jsonb[], p_priorities integer[], p_scheduled_ats timestamptz[], p_idempotency_keys text[],
  p_correlation_ids uuid[], p_expires_ats timestamptz[], p_ordering_keys text[], p_headers jsonb[], p_metadatas jsonb[]
) returns integer
language plpgsql as $$
declare
  v_keyed boolean := array_remove(p_idempotency_keys, null) <> '{}';
  v_copies record;
begin
  perform menzil._check_events(p_types, p_payloads, p_priorities, p_scheduled_ats, p_idempotency_keys, p_expires_ats, p_ordering_keys, p_headers,
    p_metadatas);
  select array_agg(f.channel) as channels, array_agg(f.payload) as payloads, array_agg(f.priority) as priorities,
         array_agg(f.scheduled_at) as scheduled_ats, case when v_keyed then array_agg(f.key) end as keys, array_agg(f.correlation_id) as correlation_ids,
         array_agg(f.expires_at) as expires_ats, array_agg(f.ordering_key) as ordering_keys, array_agg(f.headers) as headers,
         array_agg(coalesce(f.metadata, '{}') || jsonb_build_object('event_type', f.type)) as metadatas
    into v_copies
    from (
      select distinct on (e.n, c.id) e.*, c.name as channel
        from unnest(p_types, p_payloads, p_priorities, p_scheduled_ats, p_idempotency_keys, p_correlation_ids, p_expires_ats, p_ordering_keys,
                    p_headers, p_metadatas)
             with ordinality e(type, payload, priority, scheduled_at, key, correlation_id, expires_at, ordering_key, headers, metadata, n)
        cross join lateral (select s.channel_id from menzil.subscription s
                             where s.event_type = e.type and (s.filter is null or e.payload @> s.filter) offset 0) s
        cross join lateral (select c.id, c.name from menzil.channel c
                             where c.id = s.channel_id and c.enabled and c.released_at is null and c.dropped_at is null offset 0) c
       order by e.n, c.id) f;
  if v_copies.channels is null then
    return 0;
  end if;
  return (select count(distinct u.id) from unnest(menzil.send_many(v_copies.channels, v_copies.payloads, v_copies.priorities, v_copies.scheduled_ats,
    v_copies.keys, v_copies.correlation_ids, v_copies.expires_ats, v_copies.ordering_keys, v_copies.headers, v_copies.metadatas)) u(id));
end $$;
