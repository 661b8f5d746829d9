-- Replaces the config of an endpoint; messages that are tried from now on use the new one. A secret whose mark is sent
-- back stays as it is.
create or replace function menzil.alter_endpoint(p_name text, p_config jsonb) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_endpoint menzil.channel := menzil._endpoint_for(p_name);
  v_stored jsonb := (select e.secrets from menzil.endpoint_secret e where e.channel_id = v_endpoint.id);
  v_config jsonb;
  v_secrets jsonb;
begin
  perform menzil.validate_endpoint_config(v_endpoint.protocol, p_config);
  select s.config - '{rate_limit,max_concurrency}'::text[], s.secrets into v_config, v_secrets
    from menzil._split_secrets(v_endpoint.protocol, p_config, coalesce(v_stored, '{}')) s;
  update menzil.channel c set config = v_config where c.id = v_endpoint.id;
  perform menzil._store_secrets(v_endpoint.id, v_secrets);
  perform menzil._set_config_limits(p_name, p_config);
  perform menzil._event('endpoint.altered', 'endpoint', p_name, v_endpoint.config, v_config,
    jsonb_build_object('id', v_endpoint.id, 'secrets_changed', v_secrets is distinct from coalesce(v_stored, '{}')));
end $$;
