-- What the keys of the config of a broker mean together.
create or replace function menzil._check_broker_config(p_protocol text, p_config jsonb) returns void
language plpgsql immutable as $$
declare
  v_auth jsonb := p_config -> 'auth';
  v_nats boolean := p_protocol = 'nats';
  v_needed text[];   -- by this kind of authentication
  v_wrong record;
begin
  if p_protocol = 'kafka' then
    perform menzil._check_kafka_config(p_config);
    return;
  end if;
  v_needed := case when not v_nats then '{password}'::text[] else case v_auth ->> 'type'
    when 'token' then '{token}'::text[] when 'password' then '{username,password}' when 'nkey' then '{nkey_seed}' when 'credentials' then '{credentials}' end end;
  select r.path, r.what, r.hint into v_wrong from (
    select n.path, 'is needed' as what, null as hint from (values
        ('servers', v_nats),
        ('subject', v_nats),
        ('host', not v_nats),
        ('stream', not v_nats),
        ('replicas', p_config ->> 'durability' = 'replicas'),
        ('auth.type', v_nats and p_config ? 'auth'),
        ('auth.password', not v_nats and p_config ? 'auth'),
        ('cloudevents.mode', p_config ? 'cloudevents'),
        ('rate_limit.count', jsonb_typeof(p_config -> 'rate_limit') = 'object'),
        ('rate_limit.interval_ms', jsonb_typeof(p_config -> 'rate_limit') = 'object'),
        ('tls.key', p_config -> 'tls' ? 'cert'),
        ('tls.cert', p_config -> 'tls' ? 'key')
      ) n(path, needed) where n.needed and p_config #> string_to_array(n.path, '.') is null
    union all
    select 'auth.' || k.key, 'is needed with auth.type ' || (v_auth ->> 'type'), null from unnest(v_needed) k(key) where v_nats and not v_auth ? k.key
    union all
    select 'auth.' || k.key, 'does not belong to auth.type ' || (v_auth ->> 'type'), null
      from jsonb_object_keys(v_auth) k(key) where v_nats and k.key <> all ('{type}' || v_needed)
    union all
    select 'headers.' || h.name, 'may not be set', 'Headers that begin with Nats- are for the server itself.'
      from jsonb_object_keys(p_config -> 'headers') h(name) where v_nats and lower(h.name) like 'nats-%'
    union all
    select 'allow_overrides.subject', 'must list subjects: words joined by dots, without spaces, *, > and a $ at the beginning', null
      from jsonb_array_elements_text(p_config #> '{allow_overrides,subject}') s(subject) where not menzil._is_subject(s.subject)
    union all
    select 'replicas', 'goes with durability fsync or replicas', null where p_config ? 'replicas' and coalesce(p_config ->> 'durability', 'reply') = 'reply'
    union all
    select 'maxlen_exact', 'goes with maxlen', null where p_config ? 'maxlen_exact' and not p_config ? 'maxlen'
    union all
    select 'connect_timeout_seconds', 'may not be longer than timeout_seconds', null
     where (p_config ->> 'connect_timeout_seconds')::numeric > coalesce((p_config ->> 'timeout_seconds')::numeric, 10)
    ) r limit 1;
  if found then
    perform menzil._refuse_config(v_wrong.path, v_wrong.what, v_wrong.hint);
  end if;
end $$;
