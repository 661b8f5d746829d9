-- What the keys of an HTTP config mean together.
create or replace function menzil._check_http_config(p_config jsonb) returns void
language plpgsql stable as $$
declare
  v_needed text;   -- the path of a key that is missing
begin
  select n.path into v_needed from (values
      ('url', true),
      ('auth.type', p_config ? 'auth'),
      ('cloudevents.mode', p_config ? 'cloudevents'),
      ('proxy.url', p_config ? 'proxy'),
      ('proxy.username', p_config -> 'proxy' ? 'password'),
      ('rate_limit.count', jsonb_typeof(p_config -> 'rate_limit') = 'object'),
      ('rate_limit.interval_ms', jsonb_typeof(p_config -> 'rate_limit') = 'object'),
      ('tls.key', p_config -> 'tls' ? 'cert'),
      ('tls.cert', p_config -> 'tls' ? 'key')
    ) n(path, needed)
   where n.needed and p_config #> string_to_array(n.path, '.') is null limit 1;
  if found then
    perform menzil._refuse_config(v_needed, 'is needed');
  end if;
  if p_config ? 'auth' then
    perform menzil._check_http_auth(p_config -> 'auth');
    if exists (select 1 from jsonb_object_keys(p_config -> 'headers') h(name) where lower(h.name) = 'authorization') then
      perform menzil._refuse_config('headers.Authorization', 'may not be set next to auth', 'Keep one of them.');
    end if;
  end if;
  if p_config ? 'signing' and (p_config -> 'signing' ? 'secret') = (p_config -> 'signing' ? 'secrets') then
    perform menzil._refuse_config('signing', 'needs either secret or secrets');
  elsif (p_config ->> 'connect_timeout_seconds')::numeric > (p_config ->> 'timeout_seconds')::numeric then
    perform menzil._refuse_config('connect_timeout_seconds', 'may not be longer than timeout_seconds');
  end if;
end $$;

-- Each kind of authentication has its own keys.
create or replace function menzil._check_http_auth(p_auth jsonb) returns void
language plpgsql stable as $$
declare
  v_type text := p_auth ->> 'type';
  v_needed text[];
  v_optional text[];
  v_wrong text;
begin
  select t.needed, t.optional into v_needed, v_optional from (values
      ('basic', '{username,password}'::text[], '{}'::text[]),
      ('bearer', '{token}', '{}'),
      ('oauth2', '{token_url,client_id,client_secret}', '{scope,audience,client_auth}'),
      ('sigv4', '{access_key_id,secret_access_key,region,service}', '{session_token}')
    ) t(type, needed, optional)
   where t.type = v_type;
  select n.key into v_wrong from unnest(v_needed) n(key) where not p_auth ? n.key limit 1;
  if found then
    perform menzil._refuse_config('auth.' || v_wrong, format('is needed with auth.type %s', v_type));
  end if;
  select k.key into v_wrong from jsonb_object_keys(p_auth) k(key) where k.key <> all (array['type'] || v_needed || v_optional) limit 1;
  if found then
    perform menzil._refuse_config('auth.' || v_wrong, format('does not belong to auth.type %s', v_type));
  end if;
end $$;
