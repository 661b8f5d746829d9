-- Makes an event type or changes it; what is left out goes back to its default. The same again changes nothing.
create or replace function menzil.create_event_type(p_name text, p_description text default null, p_schema jsonb default null) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_old menzil.event_type;
  v_new menzil.event_type;
begin
  perform menzil._check_event_type_name(p_name);
  if length(p_description) > 2000 then
    perform menzil._refuse_value(format('A description has at most 2000 characters, this one has %s.', length(p_description)), 'Say it shorter.');
  end if;
  if p_schema is not null then
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

-- Forgets an event type and its subscriptions. What was published stays where it is.
create or replace function menzil.drop_event_type(p_name text) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_type menzil.event_type;
  v_subscriptions bigint;
begin
  delete from menzil.subscription s where s.event_type = p_name;
  get diagnostics v_subscriptions = row_count;
  delete from menzil.event_type t where t.name = p_name returning t.* into v_type;
  if not found then
    perform menzil._refuse_unknown_event_type(p_name);
  end if;
  perform menzil._event('event_type.dropped', 'event_type', p_name, jsonb_build_object('description', v_type.description, 'schema', v_type.schema),
    null, jsonb_build_object('subscriptions', v_subscriptions));
end $$;

create or replace function menzil._check_event_type_name(p_name text) returns void
language plpgsql immutable as $$
begin
  if p_name is null then
    perform menzil._refuse_null('The name of an event type');
  end if;
  perform menzil._check_name(p_name);
end $$;

-- The event type of that name, or a refusal.
create or replace function menzil._event_type_for(p_name text) returns menzil.event_type
language plpgsql stable as $$
declare
  v_type menzil.event_type;
begin
  select t.* into v_type from menzil.event_type t where t.name = p_name;
  if not found then
    perform menzil._refuse_unknown_event_type(p_name);
  end if;
  return v_type;
end $$;

create or replace function menzil._refuse_unknown_event_type(p_name text) returns void
language plpgsql as $$
begin
  if p_name is null then
    perform menzil._refuse_null('The name of an event type');
  end if;
  raise exception using errcode = '42704', message = format('There is no event type named %s.', quote_literal(menzil._shown(p_name))),
    hint = 'Create it with menzil.create_event_type(name); the view menzil.event_types lists them.';
end $$;

-- True, or a refusal that names the rule and the place; never a word of the payload itself.
create or replace function menzil.validate_event(p_event_type text, p_payload jsonb) returns boolean
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_type menzil.event_type := menzil._event_type_for(p_event_type);
begin
  if p_payload is null then
    perform menzil._refuse_null('A payload');
  end if;
  perform menzil._check_event(p_event_type, v_type.schema #> '{}', p_payload);
  return true;
end $$;

-- The schema comes unpacked (#> '{}'): a packed one would be unpacked again at every look.
create or replace function menzil._check_event(p_event_type text, p_schema jsonb, p_payload jsonb) returns void
language plpgsql immutable as $$
declare
  v_fault text[];
begin
  if p_schema is not null then
    v_fault := menzil._schema_fault(p_schema, p_payload, p_schema, 0);
    if v_fault is not null then
      perform menzil._refuse_value(format('The payload of event %s breaks the rule %s at "%s".', quote_literal(menzil._shown(p_event_type)),
          menzil._shown(v_fault[1]), left(menzil._shown(v_fault[2]), 120)),
        'Correct the payload at that JSON pointer; the view menzil.event_types has the schema.');
    end if;
  end if;
end $$;
