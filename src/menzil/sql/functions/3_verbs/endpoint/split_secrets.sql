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
end $$;
