-- Checks one value of a config against its rule. A secret may also be the mark that stands for the stored one, or
-- encrypted: then the client, who has the key, has checked it.
create or replace function menzil._check_config_value(
  p_path text, p_kind text, p_minimum numeric, p_maximum numeric, p_choices text[], p_value jsonb
) returns void
language plpgsql stable as $$
declare
  v_type text := jsonb_typeof(p_value);
  v_text text := p_value #>> '{}';
  v_number numeric := case jsonb_typeof(p_value) when 'number' then (p_value #>> '{}')::numeric end;
  v_length integer := case jsonb_typeof(p_value) when 'string' then length(p_value #>> '{}') when 'array' then jsonb_array_length(p_value) end;
  v_fits boolean := coalesce(v_number, v_length) between coalesce(p_minimum, 0) and p_maximum;
  v_pattern text;
  v_wanted text;   -- what the value should have been, when it is wrong
begin
  if p_kind like 'limit%' and v_type = 'null' then
    return;   -- null takes the limit off
  elsif p_kind in ('secret', 'signing secret', 'private key') and (menzil._is_secret_mark(p_value) or menzil._is_encrypted(p_value)) then
    return;
  end if;
  case p_kind
    when 'object', 'limit object' then
      v_wanted := case when v_type <> 'object' then 'an object' end;
    when 'boolean' then
      v_wanted := case when v_type <> 'boolean' then 'true or false' end;
    when 'choice' then
      v_wanted := case when v_type <> 'string' or v_text <> all (p_choices) then 'one of ' || array_to_string(p_choices, ', ') end;
    when 'integer', 'limit', 'number' then
      if v_type <> 'number' or not v_fits or (p_kind <> 'number' and v_text !~ '^[0-9]+$') then
        v_wanted := format('a %s from %s to %s', case p_kind when 'number' then 'number' else 'whole number' end, p_minimum, p_maximum);
      end if;
    when 'text', 'secret' then
      if v_type <> 'string' or not v_fits or v_text ~ '[[:cntrl:]]' then
        v_wanted := format('a text of %s to %s characters without control characters', p_minimum, p_maximum);
      end if;
    when 'certificate', 'private key' then
      v_pattern := case p_kind when 'certificate' then 'CERTIFICATE' else '([A-Z]+ )?PRIVATE KEY' end;
      if v_type <> 'string' or not v_fits or v_text !~ ('^[ \t\r\n]*-----BEGIN ' || v_pattern || '-----\r?\n') then
        v_wanted := format('a %s in PEM format', p_kind);
      end if;
    when 'statuses' then
      if v_type <> 'array' or not v_fits
         or exists (select 1 from jsonb_array_elements_text(p_value) s(status) where s.status !~ '^[2-5][0-9][0-9]$') then
        v_wanted := 'a list of HTTP status codes from 200 to 599';
      end if;
    when 'url' then
      perform menzil._check_url(p_path, p_value);
    when 'headers' then
      perform menzil._check_config_headers(p_path, p_value, p_maximum::integer);
    when 'signing secret' then
      if v_type <> 'string' or not menzil._is_signing_secret(v_text) then
        v_wanted := 'a Standard Webhooks secret: whsec_ and the base64 of 24 to 64 bytes';
      end if;
    when 'signing secrets' then
      if v_type <> 'array' or not v_fits then
        v_wanted := format('a list of %s to %s secrets', p_minimum, p_maximum);
      else
        perform menzil._check_config_value(format('%s.%s', p_path, e.n - 1), 'signing secret', null, null, null, e.value)
           from jsonb_array_elements(p_value) with ordinality e(value, n);
      end if;
  end case;
  if v_wanted is not null then
    perform menzil._refuse_config(p_path, 'must be ' || v_wanted);
  end if;
end $$;

-- The value itself is never repeated: it may be a secret that landed in the wrong place.
create or replace function menzil._refuse_config(p_path text, p_what text, p_hint text default 'docs/reference/endpoints.md lists every key with its range.')
returns void
language plpgsql immutable as $$
begin
  raise exception using errcode = '22023', message = format('In the endpoint config %s %s.', p_path, p_what), hint = p_hint;
end $$;

-- 32 characters of base64 are 24 bytes, 88 are 64 bytes; decode() also judges the padding.
create or replace function menzil._is_signing_secret(p_text text) returns boolean
language plpgsql immutable as $$
begin
  return p_text ~ '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$' and length(decode(substr(p_text, 7), 'base64')) between 24 and 64;
exception when invalid_parameter_value then
  return false;
end $$;
