-- Many events, all or none, each with its own options; a word that is not an option is refused, not ignored.
-- The same as menzil.publish for each of them, in one send_many over all.
create or replace function menzil.publish_batch(p_events jsonb[]) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_known constant text[] := '{event_type,payload,priority,scheduled_at,idempotency_key,correlation_id,expires_at,ordering_key,headers,metadata}';
  v_most integer := (select s.max_payload_size from menzil.setting_value s);
  v_wrong text;
  v_many record;
  v_event record;
  v_copies record;
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
  select k.key into v_wrong from unnest(p_events) e(o), jsonb_object_keys(e.o) k(key) where k.key <> all (v_known) limit 1;
  if found then
    perform menzil._refuse_value(format('An event has no option %s.', quote_literal(menzil._shown(v_wrong))),
      format('Use %s.', array_to_string(v_known, ', ')));
  end if;
  begin   -- only reads: the sends below run in no subtransaction
    select array_agg(e.o ->> 'event_type' order by e.n) as types,
           array_agg(e.o -> 'payload' order by e.n) as payloads,
           array_agg(coalesce((e.o ->> 'priority')::integer, 0) order by e.n) as priorities,
           array_agg((e.o ->> 'scheduled_at')::timestamptz order by e.n) as scheduled_ats,
           array_agg(e.o ->> 'idempotency_key' order by e.n) as keys,
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
  -- Everything that can be wrong with an event is refused, whether or not a channel has subscribed to it.
  for v_event in
    select u.name from (select distinct n.name from unnest(v_many.types) n(name)) u
     where not exists (select 1 from menzil.event_type t where t.name = u.name offset 0) order by u.name nulls first limit 1
  loop
    perform menzil._refuse_unknown_event_type(v_event.name);
  end loop;
  for v_event in
    select u.payload is null as missing, u.priority, octet_length(u.payload::text) as size
      from unnest(v_many.payloads, v_many.priorities) u(payload, priority)
     where u.payload is null or octet_length(u.payload::text) > v_most or u.priority not between 0 and 10 limit 1
  loop
    perform menzil._refuse_null('Each payload') where v_event.missing;
    perform menzil._refuse_priority(v_event.priority) where v_event.priority not between 0 and 10;
    perform menzil._refuse_size(v_event.size, v_most);
  end loop;
  perform menzil._check_options(u.scheduled_at, u.expires_at, u.ordering_key, u.idempotency_key, u.headers, u.metadata, v_most)
     from unnest(v_many.scheduled_ats, v_many.expires_ats, v_many.ordering_keys, v_many.keys, v_many.headers, v_many.metadatas)
          u(scheduled_at, expires_at, ordering_key, idempotency_key, headers, metadata)
    where u is distinct from null;
  for v_event in
    select t.name, t.schema #> '{}' as schema from (select distinct n.name from unnest(v_many.types) n(name)) u
     cross join lateral (select t.name, t.schema from menzil.event_type t where t.name = u.name offset 0) t where t.schema is not null
  loop
    perform menzil._check_event(v_event.name, v_event.schema, u.payload)
       from unnest(v_many.types, v_many.payloads) u(name, payload) where u.name = v_event.name;
  end loop;
  select array_agg(f.channel) as channels, array_agg(f.payload) as payloads, array_agg(f.priority) as priorities,
         array_agg(f.scheduled_at) as scheduled_ats, case when count(f.key) > 0 then array_agg(f.key) end as keys,
         array_agg(f.correlation_id) as correlation_ids, array_agg(f.expires_at) as expires_ats, array_agg(f.ordering_key) as ordering_keys,
         array_agg(f.headers) as headers, array_agg(coalesce(f.metadata, '{}') || jsonb_build_object('event_type', f.type)) as metadatas
    into v_copies
    from (
      select distinct on (e.n, c.id) e.*, c.name as channel
        from unnest(v_many.types, v_many.payloads, v_many.priorities, v_many.scheduled_ats, v_many.keys, v_many.correlation_ids, v_many.expires_ats,
                    v_many.ordering_keys, v_many.headers, v_many.metadatas)
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
