-- What is wrong with the login to a broker: the same for endpoints and bridges.
create or replace function menzil._auth_faults(p_protocol text, p_config jsonb) returns table (path text, what text, hint text)
language plpgsql immutable as $$
declare
  v_auth jsonb := p_config -> 'auth';
  v_type text := v_auth ->> 'type';
  v_typed boolean := p_protocol in ('amqp', 'kafka', 'nats');
  v_with text := case when v_typed then ' with auth.type ' || v_type else '' end;
  v_keys record;   -- of this kind of login
begin
  if v_auth is null then
    return;
  elsif v_typed and v_type is null then
    return query select 'auth.type', 'is needed', case when p_protocol = 'amqp' then 'Write plain for user name and password, or external for a client certificate.' end;
    return;
  end if;
  select t.needed, t.optional into v_keys from (values
      ('amqp', 'plain', '{username,password}'::text[], '{}'::text[]),
      ('amqp', 'external', '{}', '{}'),
      ('kafka', 'plain', '{username,password}', '{}'),
      ('kafka', 'scram-sha-256', '{username,password}', '{}'),
      ('kafka', 'scram-sha-512', '{username,password}', '{}'),
      ('kafka', 'oauth2', '{token_url,client_id,client_secret}', '{client_auth,scope,audience}'),
      ('mqtt', null, '{username}', '{password}'),
      ('nats', 'token', '{token}', '{}'),
      ('nats', 'password', '{username,password}', '{}'),
      ('nats', 'nkey', '{nkey_seed}', '{}'),
      ('nats', 'credentials', '{credentials}', '{}'),
      ('redis', null, '{password}', '{username}')
    ) t(protocol, type, needed, optional) where t.protocol = p_protocol and t.type is not distinct from v_type;
  return query
    select 'auth.' || k.key, 'is needed' || v_with, null::text from unnest(v_keys.needed) k(key) where not v_auth ? k.key
    union all
    select 'auth.' || k.key, 'does not belong to auth.type ' || v_type, case when v_type = 'external' then 'The server takes the user name from the certificate.' end
      from jsonb_object_keys(v_auth) k(key) where v_typed and k.key <> all ('{type}' || v_keys.needed || v_keys.optional)
    union all
    select e.key, e.what, 'The certificate is the login.' from (values
        ('tls.cert', 'is needed with auth.type external', p_config #> '{tls,cert}' is null),
        ('tls.enabled', 'may not be false with auth.type external', p_config #> '{tls,enabled}' = 'false')
      ) e(key, what, wrong) where v_type = 'external' and e.wrong;
end $$;
