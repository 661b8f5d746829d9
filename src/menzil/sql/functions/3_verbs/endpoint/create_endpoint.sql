-- Makes an endpoint: a channel with a destination attached. Returns its id.
create or replace function menzil.create_endpoint(p_name text, p_protocol text, p_config jsonb) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_id integer;
  v_split record;
begin
  perform menzil._refuse_replica();
  perform menzil._check_name(p_name);
  perform menzil.validate_endpoint_config(p_protocol, p_config);
  v_split := menzil._split_secrets(p_protocol, p_config, '{}');
  insert into menzil.channel (name, protocol, config) values (p_name, p_protocol, v_split.config)
    on conflict (name) where dropped_at is null do nothing
    returning id into v_id;
  if v_id is null then
    raise exception using errcode = '42710', message = format('There is already a channel or endpoint named %s.', quote_literal(p_name)),
      hint = 'Change an endpoint with menzil.alter_endpoint(name, config), or choose another name.';
  end if;
  perform menzil._store_apart(p_name, p_config, v_split.secrets);
  perform menzil._event('endpoint.created', 'endpoint', p_name, null, v_split.config, jsonb_build_object('id', v_id, 'protocol', p_protocol));
  return v_id;
end $$;
