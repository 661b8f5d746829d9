-- Replaces the config of an endpoint; messages that are tried from now on use the new one. A secret whose mark is sent
-- back stays as it is.
create or replace function menzil.alter_endpoint(p_name text, p_config jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_endpoint menzil.channel := menzil._endpoint_for(p_name);
  v_stored jsonb := coalesce((select e.secrets from menzil.endpoint_secret e where e.channel_id = v_endpoint.id), '{}');
  v_split record;
begin
  perform menzil._refuse_replica();
  perform menzil.validate_endpoint_config(v_endpoint.protocol, p_config);
  v_split := menzil._split_secrets(v_endpoint.protocol, p_config, v_stored);
  update menzil.channel c set config = v_split.config where c.id = v_endpoint.id;
  perform menzil._store_apart(p_name, p_config, v_split.secrets);
  perform menzil._event('endpoint.altered', 'endpoint', p_name, v_endpoint.config, v_split.config,
    jsonb_build_object('id', v_endpoint.id, 'secrets_changed', v_split.secrets is distinct from v_stored));
end $$;
