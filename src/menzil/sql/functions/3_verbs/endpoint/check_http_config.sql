-- What the keys of an HTTP config mean together. Each kind of authentication has its own keys.
create or replace function menzil._check_http_config(p_config jsonb) returns void
language plpgsql stable as $$
declare
  v_auth jsonb := p_config -> 'auth';
  v_keys record;   -- of this kind of authentication
  v_wrong record;
begin
  select t.needed, t.optional into v_keys from (values
      ('basic', '{username,password}'::text[], '{}'::text[]),
      ('bearer', '{token}', '{}'),
      ('oauth2', '{token_url,client_id,client_secret}', '{scope,audience,client_auth}'),
      ('sigv4', '{access_key_id,secret_access_key,region,service}', '{session_token}')
    ) t(type, needed, optional)
   where t.type = v_auth ->> 'type';
  select r.path, r.what, r.hint into v_wrong from (
    select n.path, 'is needed' as what, null as hint from (values
        ('url', true),
        ('auth.type', p_config ? 'auth'),
        ('proxy.url', p_config ? 'proxy'),
        ('proxy.username', p_config -> 'proxy' ? 'password')
      ) n(path, needed) where n.needed and p_config #> string_to_array(n.path, '.') is null
    union all
    select f.path, f.what, f.hint from menzil._common_faults('http', p_config) f
    union all
    select 'auth.' || k.key, 'is needed with auth.type ' || (v_auth ->> 'type'), null from unnest(v_keys.needed) k(key) where not v_auth ? k.key
    union all
    select 'auth.' || k.key, 'does not belong to auth.type ' || (v_auth ->> 'type'), null
      from jsonb_object_keys(v_auth) k(key) where k.key <> all (array['type'] || v_keys.needed || v_keys.optional)
    union all
    select 'headers.Authorization', 'may not be set next to auth', 'Keep one of them.'
      from jsonb_object_keys(p_config -> 'headers') h(name) where v_auth is not null and lower(h.name collate "C") = 'authorization'
    union all
    select 'signing', 'needs either secret or secrets', null where (p_config -> 'signing' ? 'secret') = (p_config -> 'signing' ? 'secrets')
    union all
    select 'overridable_headers', format('names %s, which is not among headers', quote_literal(menzil._shown(o.name))),
           coalesce('Did you mean ' || menzil._nearest_word(o.name, array(select lower(h.name collate "C") from jsonb_object_keys(p_config -> 'headers') h(name))) || '?',
                    'Every other header of a message is sent anyway.')
      from jsonb_array_elements_text(p_config -> 'overridable_headers') o(name)
     where not exists (select 1 from jsonb_object_keys(p_config -> 'headers') h(name) where lower(h.name collate "C") = lower(o.name collate "C"))
    union all
    select 'overridable_headers', format('names %s, which holds a secret', quote_literal(menzil._shown(o.name))), 'A message never replaces a secret of its endpoint.'
      from jsonb_array_elements_text(p_config -> 'overridable_headers') o(name) where menzil._is_secret_header(o.name)
    ) r limit 1;
  if found then
    perform menzil._refuse_config(v_wrong.path, v_wrong.what, v_wrong.hint);
  end if;
end $$;
