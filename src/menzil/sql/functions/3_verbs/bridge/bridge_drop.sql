-- Removes a bridge, its secrets and its positions. The messages that it made stay.
create or replace function menzil.bridge_drop(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_bridge menzil.bridge := menzil._bridge_for(p_name);
begin
  perform menzil._event('bridge.dropped', 'bridge', p_name, v_bridge.config, null, jsonb_build_object('id', v_bridge.id, 'protocol', v_bridge.protocol,
    'positions', (select jsonb_object_agg(p.partition, p.position) from menzil.bridge_position p where p.bridge_id = v_bridge.id)));
  delete from menzil.bridge b where b.id = v_bridge.id;
end $$;
