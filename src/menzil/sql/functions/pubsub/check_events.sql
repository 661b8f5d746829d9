-- Everything that can be wrong with events, whether or not anybody has subscribed to them.
create or replace function menzil._check_events(
  p_types text[], p_payloads jsonb[], p_priorities integer[], p_scheduled_ats timestamptz[], p_idempotency_keys text[],
  p_expires_ats timestamptz[], p_ordering_keys text[], p_headers jsonb[], p_metadatas jsonb[]
) returns void
language plpgsql as $$
declare
  v_most integer := (select s.max_payload_size from menzil.setting_value s);
  v_event record;
begin
  for v_event in
    select u.name from (select distinct n.name from unnest(p_types) n(name)) u
     where not exists (select 1 from menzil.event_type t where t.name = u.name offset 0) order by u.name nulls first limit 1
  loop
    perform menzil._refuse_unknown_event_type(v_event.name);
  end loop;
  for v_event in
    select u.payload is null as missing, u.priority, octet_length(u.payload::text) as size
      from unnest(p_payloads, p_priorities) u(payload, priority)
     where u.payload is null or octet_length(u.payload::text) > v_most or u.priority not between 0 and 10 limit 1
  loop
    if v_event.missing then
      perform menzil._refuse_null('Each payload');
    elsif v_event.priority not between 0 and 10 then
      perform menzil._refuse_priority(v_event.priority);
    end if;
    perform menzil._refuse_size(v_event.size, v_most);
  end loop;
  perform menzil._check_options(u.scheduled_at, u.expires_at, u.ordering_key, u.idempotency_key, u.headers, u.metadata, v_most)
     from unnest(p_scheduled_ats, p_expires_ats, p_ordering_keys, p_idempotency_keys, p_headers, p_metadatas)
          u(scheduled_at, expires_at, ordering_key, idempotency_key, headers, metadata)
    where u is distinct from null;
  for v_event in
    select t.name, t.schema #> '{}' as schema from (select distinct n.name from unnest(p_types) n(name)) u
     cross join lateral (select t.name, t.schema from menzil.event_type t where t.name = u.name offset 0) t where t.schema is not null
  loop
    perform menzil._check_event(v_event.name, v_event.schema, u.payload)
       from unnest(p_types, p_payloads) u(name, payload) where u.name = v_event.name;
  end loop;
end $$;
