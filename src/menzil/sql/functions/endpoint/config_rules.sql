-- What the config of an endpoint may hold: one row per key, nested keys with their path. This list is the whole truth;
-- a key that is not here is refused. Kinds: see _check_config_value.
create or replace function menzil._config_rules(p_protocol text)
returns table (path text, kind text, minimum numeric, maximum numeric, choices text[])
language plpgsql stable as $$
begin
  if p_protocol = 'http' then
    return query select r.path, r.kind, r.minimum, r.maximum, r.choices from menzil._http_config_rules() r;
  else
    return query
      select r.path, r.kind, r.minimum, r.maximum, r.choices
        from menzil.protocol p cross join jsonb_to_recordset(p.rules) r(path text, kind text, minimum numeric, maximum numeric, choices text[])
       where p.name = p_protocol;
  end if;
end $$;
