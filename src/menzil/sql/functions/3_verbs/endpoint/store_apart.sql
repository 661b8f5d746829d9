-- Stores what came with a config and is not kept in it. Secrets have a table of their own. rate_limit and max_concurrency are
-- limits of the channel, where all workers share them: a key that is not there leaves its limit alone, so changing a URL never
-- takes off what menzil.channel_set put on; null takes it off.
create or replace function menzil._store_apart(p_name text, p_config jsonb, p_secrets jsonb) returns void
language plpgsql as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_name);
begin
  delete from menzil.endpoint_secret e where e.channel_id = v_channel.id and p_secrets = '{}';
  insert into menzil.endpoint_secret (channel_id, secrets) select v_channel.id, p_secrets where p_secrets <> '{}'
    on conflict (channel_id) do update set secrets = excluded.secrets;
  if p_config ? 'max_concurrency' then
    v_channel.max_concurrency := (p_config ->> 'max_concurrency')::integer;
  end if;
  if p_config ? 'rate_limit' then
    v_channel.release_interval_ms := coalesce((p_config #>> '{rate_limit,interval_ms}')::bigint, 0);
    v_channel.release_count := coalesce((p_config #>> '{rate_limit,count}')::integer, 1);
  end if;
  if p_config ?| '{rate_limit,max_concurrency}' then
    perform menzil.channel_set(p_name, v_channel.max_concurrency, v_channel.max_size, v_channel.release_interval_ms, v_channel.release_count,
      v_channel.on_dead);
  end if;
end $$;
