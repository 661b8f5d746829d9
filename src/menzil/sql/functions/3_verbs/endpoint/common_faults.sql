-- What is wrong with the keys that every protocol has, as far as they mean something together. A bridge is 'redis bridge', as in _config_rules.
create or replace function menzil._common_faults(p_protocol text, p_config jsonb) returns table (path text, what text, hint text)
language plpgsql immutable as $$
declare
  v_broker boolean := p_protocol <> 'http' and p_protocol not like '% bridge';
begin
  return query
    select n.key, 'is needed', null::text from (values
        ('cloudevents.mode', p_config ? 'cloudevents'),
        ('rate_limit.count', jsonb_typeof(p_config -> 'rate_limit') = 'object'),
        ('rate_limit.interval_ms', jsonb_typeof(p_config -> 'rate_limit') = 'object'),
        ('tls.key', p_config -> 'tls' ? 'cert'),
        ('tls.cert', p_config -> 'tls' ? 'key')
      ) n(key, needed) where n.needed and p_config #> string_to_array(n.key, '.') is null
    union all
    select 'connect_timeout_seconds', 'may not be longer than timeout_seconds', null
     where p_protocol not like '% bridge'
       and (p_config ->> 'connect_timeout_seconds')::numeric > coalesce((p_config ->> 'timeout_seconds')::numeric, case when v_broker then 10 end)
    union all
    select 'headers.' || h.name, 'may not be set', 'menzil writes this header itself, another value for each message.'
      from jsonb_object_keys(p_config -> 'headers') h(name)
     where v_broker and lower(h.name collate "C") in ('menzil-id', 'menzil-key', 'menzil-type', 'menzil-attempt', 'correlation-id');
end $$;
