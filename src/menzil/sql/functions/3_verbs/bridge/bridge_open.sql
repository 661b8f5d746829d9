-- A process begins to run a bridge, or begins anew after a change: what it must know, secrets included. family is the same for all
-- processes of this bridge in this database, and another one in a copy.
create or replace function menzil.bridge_open(p_name text, p_instance text, p_host text, p_pid integer, p_version text)
returns table (id integer, protocol text, config jsonb, channel text, event_type text, paused boolean, updated_at timestamptz, positions jsonb, family text)
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_bridge menzil.bridge;
begin
  if p_name is null or p_instance is null or p_host is null or p_pid is null or p_version is null then
    perform menzil._refuse_null('Name of the bridge, instance, host, process id and version');
  end if;
  perform menzil._refuse_copy();
  select b.* into v_bridge from menzil.bridge b where b.name = p_name;
  perform menzil._refuse_unknown_bridge(p_name) where v_bridge.id is null;
  -- Processes that ended long ago. Those of yesterday stay, for people who look for the reason.
  delete from menzil.bridge_run r where r.ctid = any (array(
    select o.ctid from menzil.bridge_run o where o.bridge_id = v_bridge.id and o.heartbeat_at < v_now - interval '1 day' for update skip locked));
  insert into menzil.bridge_run as r (bridge_id, instance, host, pid, version, started_at, heartbeat_at)
    values (v_bridge.id, left(p_instance, 100), left(p_host, 255), p_pid, left(p_version, 100), v_now, v_now)
    on conflict (bridge_id, instance) do update set heartbeat_at = v_now, stopped_at = null;
  return query select v_bridge.id, v_bridge.protocol, menzil._bridge_config(v_bridge), v_bridge.channel, v_bridge.event_type, v_bridge.paused, v_bridge.updated_at,
    coalesce((select jsonb_object_agg(p.partition, p.position) from menzil.bridge_position p where p.bridge_id = v_bridge.id), '{}'),
    (select format('menzil-%s-%s', v_bridge.id, left(md5(concat_ws(' ', h.system_identifier, h.database_oid, h.recorded_at)), 12)) from menzil.home h);
end $$;

-- The config with its secrets.
create or replace function menzil._bridge_config(p_bridge menzil.bridge) returns jsonb
language plpgsql stable as $$
declare
  v_config jsonb := p_bridge.config;
  v_path text;
  v_value jsonb;
begin
  for v_path, v_value in select s.key, s.value from menzil.bridge_secret e, jsonb_each(e.secrets) s where e.bridge_id = p_bridge.id loop
    v_config := jsonb_set(v_config, v_path::text[], v_value);
  end loop;
  return v_config;
end $$;
