-- Forgets an event type and its subscriptions. What was published stays where it is.
create or replace function menzil.drop_event_type(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_type menzil.event_type;
  v_subscriptions bigint;
begin
  delete from menzil.subscription s where s.event_type = p_name;
  get diagnostics v_subscriptions = row_count;
  delete from menzil.event_type t where t.name = p_name returning t.* into v_type;
  perform menzil._refuse_unknown_event_type(p_name) where not found;
  perform menzil._event('event_type.dropped', 'event_type', p_name, jsonb_build_object('description', v_type.description, 'schema', v_type.schema),
    null, jsonb_build_object('subscriptions', v_subscriptions));
end $$;

-- True, or a refusal that names the rule and the place; never a word of the payload itself.
create or replace function menzil.validate_event(p_event_type text, p_payload jsonb) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_schema jsonb;
begin
  select t.schema #> '{}' into v_schema from menzil.event_type t where t.name = p_event_type;
  perform menzil._refuse_unknown_event_type(p_event_type) where not found;
  perform menzil._refuse_null('A payload') where p_payload is null;
  perform menzil._check_event(p_event_type, v_schema, p_payload);
  return true;
end $$;
