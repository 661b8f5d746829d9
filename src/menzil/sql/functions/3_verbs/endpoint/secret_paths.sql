-- Where the secrets of a config are, and where the stored one is that a mark there stands for.
create or replace function menzil._secret_paths(p_protocol text, p_config jsonb)
returns table (path text[], stored_path text[])
language sql stable as $$
  select string_to_array(r.path, '.'), string_to_array(r.path, '.')
    from menzil._config_rules(p_protocol) r
   where r.kind in ('secret', 'signing secret', 'private key', 'credentials') and p_config #> string_to_array(r.path, '.') is not null
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
