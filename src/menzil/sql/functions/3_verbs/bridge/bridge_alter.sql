-- Replaces the config of a bridge, or its goal; null leaves what is there. A secret whose mark is sent back stays as it is. Positions stay:
-- menzil.bridge_seek moves them. A process that runs the bridge begins anew with the next heartbeat.
create or replace function menzil.bridge_alter(p_name text, p_config jsonb default null, p_channel text default null, p_event_type text default null) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_bridge menzil.bridge := menzil._bridge_for(p_name);
  v_stored jsonb := coalesce((select s.secrets from menzil.bridge_secret s where s.bridge_id = v_bridge.id), '{}');
  v_split record;
begin
  if p_config is null and p_channel is null and p_event_type is null then
    perform menzil._refuse_null('A config, a channel or an event type');
  end if;
  perform menzil._check_bridge_goal(p_channel, p_event_type) where p_channel is not null or p_event_type is not null;
  perform menzil._check_bridge_config(v_bridge.protocol, coalesce(p_config, v_bridge.config));
  v_split := menzil._split_secrets(v_bridge.protocol || ' bridge', coalesce(p_config, v_bridge.config), v_stored);
  update menzil.bridge b set config = v_split.config, updated_at = clock_timestamp(),
      channel = case when p_channel is null and p_event_type is null then b.channel else p_channel end,
      event_type = case when p_channel is null and p_event_type is null then b.event_type else p_event_type end
   where b.id = v_bridge.id;
  delete from menzil.bridge_secret s where s.bridge_id = v_bridge.id;
  insert into menzil.bridge_secret (bridge_id, secrets) select v_bridge.id, v_split.secrets where v_split.secrets <> '{}';
  perform menzil._event('bridge.altered', 'bridge', p_name, v_bridge.config, v_split.config, jsonb_build_object('id', v_bridge.id,
    'channel', coalesce(p_channel, case when p_event_type is null then v_bridge.channel end),
    'event_type', coalesce(p_event_type, case when p_channel is null then v_bridge.event_type end),
    'secrets_changed', v_split.secrets is distinct from v_stored));
end $$;
