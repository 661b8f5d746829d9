-- Makes an event type or changes it; what is left out goes back to its default. The same again changes nothing.
create or replace function menzil.create_event_type(p_name text, p_description text default null, p_schema jsonb default null) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_old menzil.event_type;
  v_new menzil.event_type;
begin
  perform menzil._refuse_null('The name of an event type') where p_name is null;
  if not exists (select 1 from menzil.event_type t where t.name = p_name) then   -- one that is there may be refused today
    perform menzil._check_name(p_name);
  end if;
  if length(p_description) > 2000 then
    perform menzil._refuse_value(format('A description has at most 2000 characters, this one has %s.', length(p_description)), 'Say it shorter.');
  end if;
  if p_schema is not null then
    p_schema := menzil._resolve_references(p_schema);
    perform menzil._check_schema(p_schema);
  end if;
  loop
    select t.* into v_old from menzil.event_type t where t.name = p_name for no key update;
    if found then
      if (v_old.description, v_old.schema) is not distinct from (p_description, p_schema) then
        return;
      end if;
      update menzil.event_type t set description = p_description, schema = p_schema where t.name = p_name returning t.* into v_new;
      exit;
    end if;
    insert into menzil.event_type (name, description, schema) values (p_name, p_description, p_schema) on conflict do nothing returning * into v_new;
    exit when found;
  end loop;
  perform menzil._event(case when v_old.name is null then 'event_type.created' else 'event_type.changed' end, 'event_type', p_name,
    case when v_old.name is not null then jsonb_build_object('description', v_old.description, 'schema', v_old.schema) end,
    jsonb_build_object('description', v_new.description, 'schema', v_new.schema));
end $$;
