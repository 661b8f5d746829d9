-- Secrets live in their own table, which no role may read; the config that people see has a mark in their place.
-- A caller that sends a mark back keeps the stored secret. In a list, the first mark stands for the first stored secret, and
-- so on: ["whsec_new...", mark] adds a new one before the one that is stored.

-- Splits a valid config into what people may see and its secrets, a flat object from path to value. Limits are kept in neither:
-- menzil._store_apart gives them to the channel.
create or replace function menzil._split_secrets(p_protocol text, p_config jsonb, p_stored jsonb, out config jsonb, out secrets jsonb)
language plpgsql stable as $$
declare
  v_path text[];
  v_stored_path text[];
  v_value jsonb;
  v_url record;
begin
  config := p_config - '{rate_limit,max_concurrency}'::text[];
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
    config := jsonb_set(config, v_path, '{"$secret": true}');
    secrets := secrets || jsonb_build_object(v_path::text, v_value);
  end loop;
  -- A URL that carries a credential is a secret as a whole; people see it with *** for the credential.
  for v_url in select u.path, u.url, u.hidden from menzil._credential_urls(p_protocol, p_config) u loop
    v_value := case when v_url.hidden then p_stored -> v_url.path::text else to_jsonb(v_url.url) end;
    if menzil._shown_url(v_value #>> '{}') is distinct from menzil._shown_url(v_url.url) then
      perform menzil._refuse_config(array_to_string(v_url.path, '.'), 'has *** in place of a hidden value, and no such URL is stored', 'Send the whole URL.');
    end if;
    config := jsonb_set(config, v_url.path, to_jsonb(menzil._shown_url(v_url.url)));
    secrets := secrets || jsonb_build_object(v_url.path::text, v_value);
  end loop;
end $$;

-- Endpoints of releases that showed such URLs. Later runs find none.
do $do$
declare
  v_old record;
  v_split record;
begin
  for v_old in
    select c.id, c.protocol, c.config, coalesce(e.secrets, '{}') as secrets
      from menzil.channel c left join menzil.endpoint_secret e on e.channel_id = c.id
     where c.protocol is not null and c.dropped_at is null and strpos(c.config::text, '?') > 0
       and exists (select 1 from menzil._credential_urls(c.protocol, c.config) u where not u.hidden)
  loop
    v_split := menzil._split_secrets(v_old.protocol, v_old.config, v_old.secrets);
    update menzil.channel c set config = v_split.config where c.id = v_old.id;
    insert into menzil.endpoint_secret (channel_id, secrets) values (v_old.id, v_split.secrets)
      on conflict (channel_id) do update set secrets = excluded.secrets;
  end loop;
end $do$;
