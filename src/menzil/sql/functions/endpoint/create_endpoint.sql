-- Makes an endpoint: a channel with a destination attached. Returns its id.
create or replace function menzil.create_endpoint(p_name text, p_protocol text, p_config jsonb) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_id integer;
  v_config jsonb;
  v_secrets jsonb;
begin
  perform menzil._check_name(p_name);
  perform menzil.validate_endpoint_config(p_protocol, p_config);
  select s.config - '{rate_limit,max_concurrency}'::text[], s.secrets into v_config, v_secrets
    from menzil._split_secrets(p_protocol, p_config, '{}') s;
  insert into menzil.channel (name, protocol, config) values (p_name, p_protocol, v_config)
    on conflict (name) where dropped_at is null do nothing
    returning id into v_id;
  if v_id is null then
    raise exception using errcode = '42710', message = format('There is already a channel or endpoint named %s.', quote_literal(p_name)),
      hint = 'Change an endpoint with menzil.alter_endpoint(name, config), or choose another name.';
  end if;
  perform menzil._store_secrets(v_id, v_secrets);
  perform menzil._set_config_limits(p_name, p_config);
  perform menzil._event('endpoint.created', 'endpoint', p_name, null, v_config, jsonb_build_object('id', v_id, 'protocol', p_protocol));
  return v_id;
end $$;

-- rate_limit and max_concurrency of a config are limits of the channel, where all workers share them. A key that is not
-- there leaves its limit alone, so changing a URL never takes off what menzil.channel_set put on; null takes it off.
create or replace function menzil._set_config_limits(p_name text, p_config jsonb) returns void
language plpgsql as $$
declare
  v_channel menzil.channel;
begin
  if not p_config ?| '{rate_limit,max_concurrency}' then
    return;
  end if;
  v_channel := menzil._channel_for(p_name);
  if p_config ? 'max_concurrency' then
    v_channel.max_concurrency := (p_config ->> 'max_concurrency')::integer;
  end if;
  if p_config ? 'rate_limit' then
    v_channel.release_interval_ms := coalesce((p_config #>> '{rate_limit,interval_ms}')::bigint, 0);
    v_channel.release_count := coalesce((p_config #>> '{rate_limit,count}')::integer, 1);
  end if;
  perform menzil.channel_set(p_name, v_channel.max_concurrency, v_channel.max_size, v_channel.release_interval_ms, v_channel.release_count,
    v_channel.on_dead);
end $$;
