-- Secrets live in their own table, which no role may read; the config that people see has a mark in their place.
-- Whoever sends a mark back keeps the stored secret. In a list, the first mark stands for the first stored secret, and
-- so on: ["whsec_new...", mark] adds a new one before the one that is stored.

create or replace function menzil._secret_mark() returns jsonb
language sql immutable parallel safe
return '{"$secret": true}'::jsonb;

create or replace function menzil._is_secret_mark(p_value jsonb) returns boolean
language sql immutable parallel safe
return p_value = '{"$secret": true}'::jsonb;

-- A secret that a client with a key has encrypted before it came here: {"$encrypted": "v1:<key id>:<base64>"}.
create or replace function menzil._is_encrypted(p_value jsonb) returns boolean
language sql immutable parallel safe
return coalesce(jsonb_typeof(p_value) = 'object'
  and p_value = jsonb_build_object('$encrypted', p_value -> '$encrypted')
  and jsonb_typeof(p_value -> '$encrypted') = 'string'
  and p_value ->> '$encrypted' ~ '^v1:[0-9a-f]{8}:[A-Za-z0-9+/]{38,}={0,2}$', false);

-- Headers whose values are credentials as a rule are treated as such.
create or replace function menzil._is_secret_header(p_name text) returns boolean
language sql immutable parallel safe
return p_name ~* '(-auth|authorization|authentication|cookie|credential|key|password|secret|signature|token)';

-- Where the secrets of a config are, and where the stored one is that a mark there stands for.
create or replace function menzil._secret_paths(p_protocol text, p_config jsonb)
returns table (path text[], stored_path text[])
language sql stable as $$
  select string_to_array(r.path, '.'), string_to_array(r.path, '.')
    from menzil._config_rules(p_protocol) r
   where r.kind in ('secret', 'signing secret', 'private key') and p_config #> string_to_array(r.path, '.') is not null
  union all
  select string_to_array(r.path, '.') || (e.n - 1)::text,
         string_to_array(r.path, '.') || (count(*) filter (where menzil._is_secret_mark(e.value)) over (partition by r.path order by e.n) - 1)::text
    from menzil._config_rules(p_protocol) r,
         jsonb_array_elements(case r.kind when 'signing secrets' then p_config #> string_to_array(r.path, '.') end) with ordinality e(value, n)
  union all
  select array[r.path, h.key], array[r.path, h.key]
    from menzil._config_rules(p_protocol) r, jsonb_each(case r.kind when 'headers' then p_config -> r.path end) h
   where menzil._is_secret_header(h.key)
$$;

-- Splits a valid config into what people may see and its secrets, a flat object from path to value.
create or replace function menzil._split_secrets(p_protocol text, p_config jsonb, p_stored jsonb, out config jsonb, out secrets jsonb)
language plpgsql stable as $$
declare
  v_path text[];
  v_stored_path text[];
  v_value jsonb;
begin
  config := p_config;
  secrets := '{}';
  for v_path, v_stored_path in select s.path, s.stored_path from menzil._secret_paths(p_protocol, p_config) s loop
    v_value := p_config #> v_path;
    if menzil._is_secret_mark(v_value) then
      -- signing.secret may become the first of signing.secrets, which is how its rotation begins.
      v_value := coalesce(p_stored -> v_stored_path::text, case when v_stored_path = '{signing,secrets,0}' then p_stored -> '{signing,secret}' end);
      if v_value is null then
        perform menzil._refuse_config(array_to_string(v_path, '.'), 'has the mark of a stored secret, but none is stored', 'Send the secret itself.');
      end if;
    end if;
    config := jsonb_set(config, v_path, menzil._secret_mark());
    secrets := secrets || jsonb_build_object(v_path::text, v_value);
  end loop;
end $$;

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

create or replace function menzil._store_secrets(p_channel_id integer, p_secrets jsonb) returns void
language sql as $$
  delete from menzil.endpoint_secret e where e.channel_id = p_channel_id and p_secrets = '{}';
  insert into menzil.endpoint_secret (channel_id, secrets) select p_channel_id, p_secrets where p_secrets <> '{}'
    on conflict (channel_id) do update set secrets = excluded.secrets;
$$;
