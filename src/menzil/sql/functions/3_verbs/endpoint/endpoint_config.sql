-- The config with its secrets, for the worker that delivers to this endpoint.
create or replace function menzil._endpoint_config(p_channel_id integer) returns jsonb
language plpgsql stable as $$
declare
  v_config jsonb;
  v_path text;
  v_value jsonb;
begin
  select c.config into v_config from menzil.channel c where c.id = p_channel_id;
  for v_path, v_value in
    select s.key, s.value from menzil.endpoint_secret e, jsonb_each(e.secrets) s where e.channel_id = p_channel_id
  loop
    v_config := jsonb_set(v_config, v_path::text[], v_value);
  end loop;
  return v_config;
end $$;
