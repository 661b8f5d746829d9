-- Makes a bridge: records of a source become messages of a channel or endpoint, or events of a type. Nothing is taken before a process
-- runs it. Returns its id.
create or replace function menzil.bridge_create(p_name text, p_protocol text, p_config jsonb, p_channel text default null, p_event_type text default null)
returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_id integer;
  v_split record;
begin
  perform menzil._check_name(p_name);
  perform menzil._check_bridge_config(p_protocol, p_config);
  perform menzil._check_bridge_goal(p_channel, p_event_type);
  v_split := menzil._split_secrets(p_protocol || ' bridge', p_config, '{}');
  insert into menzil.bridge (name, protocol, config, channel, event_type) values (p_name, p_protocol, v_split.config, p_channel, p_event_type)
    on conflict (name) do nothing returning id into v_id;
  if v_id is null then
    raise exception using errcode = '42710', message = format('There is already a bridge named %s.', quote_literal(p_name)),
      hint = 'Change it with menzil.bridge_alter(name, config), or choose another name.';
  end if;
  insert into menzil.bridge_secret (bridge_id, secrets) select v_id, v_split.secrets where v_split.secrets <> '{}';
  perform menzil._event('bridge.created', 'bridge', p_name, null, v_split.config,
    jsonb_build_object('id', v_id, 'protocol', p_protocol, 'channel', p_channel, 'event_type', p_event_type));
  return v_id;
end $$;
