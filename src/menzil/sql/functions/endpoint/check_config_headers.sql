-- Headers that every request to an endpoint carries. Some belong to the connection or are made by the worker itself.
create or replace function menzil._check_config_headers(p_path text, p_value jsonb, p_maximum integer) returns void
language plpgsql stable as $$
declare
  v_name text;
begin
  if jsonb_typeof(p_value) <> 'object' then
    perform menzil._refuse_config(p_path, 'must be an object of names and values');
  elsif (select count(*) from jsonb_object_keys(p_value)) > p_maximum then
    perform menzil._refuse_config(p_path, format('has more than %s headers', p_maximum));
  end if;
  -- A mark stands for a stored value, which was checked when it came; an encrypted one was checked by the client.
  perform menzil._check_headers(coalesce((select jsonb_object_agg(h.key, h.value) from jsonb_each(p_value) h
                                           where not (menzil._is_secret_header(h.key)
                                                      and (menzil._is_secret_mark(h.value) or menzil._is_encrypted(h.value)))), '{}'));
  select h.name into v_name from jsonb_object_keys(p_value) h(name)
   where lower(h.name) in ('connection', 'content-length', 'expect', 'host', 'keep-alive', 'proxy-authenticate', 'proxy-authorization',
                           'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade',
                           'webhook-id', 'webhook-signature', 'webhook-timestamp') limit 1;
  if found then
    perform menzil._refuse_config(format('%s.%s', p_path, v_name), 'may not be set', 'It belongs to the connection or is set by menzil itself.');
  end if;
  select h.key into v_name from jsonb_each_text(p_value) h
   where h.value !~ '^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$' and h.value <> '' limit 1;
  if found then
    perform menzil._refuse_config(format('%s.%s', p_path, v_name), 'must be ASCII text without spaces at its ends');
  end if;
  select lower(h.name) into v_name from jsonb_object_keys(p_value) h(name) group by 1 having count(*) > 1 limit 1;
  if found then
    perform menzil._refuse_config(format('%s.%s', p_path, v_name), 'is given twice', 'Header names do not distinguish upper and lower case.');
  end if;
end $$;
