-- Checks every key of a config, at every level, against the rules of its protocol. A secret may also be the mark that stands
-- for the stored one, or encrypted: then the client, who has the key, has checked it.
create or replace function menzil._check_config(p_protocol text, p_config jsonb, p_parent text default null) returns void
language plpgsql stable as $$
declare
  v_secret constant text := replace('^whsec_(B{4}){8,20}(B{2}==|B{3}=|B{4}(B{2}==)?)?$', 'B', '[A-Za-z0-9+/]');   -- 24 to 64 bytes
  v_standard constant text := 'a Standard Webhooks secret: whsec_ and the base64 of 24 to 64 bytes';
  v_key text;
  v_value jsonb;
  v_path text;
  v_known text[];
  v_rule record;
  v_type text;
  v_text text;
  v_fits boolean;
  v_wanted text;   -- what the value should have been, when it is wrong
begin
  for v_key, v_value in select e.key, e.value from jsonb_each(p_config) e loop
    v_path := concat_ws('.', p_parent, v_key);
    select r.kind, r.minimum, r.maximum, r.choices into v_rule from menzil._config_rules(p_protocol) r where r.path = v_path;
    if not found or v_key like '%.%' then
      v_known := array(select r.path from menzil._config_rules(p_protocol) r where regexp_replace(r.path, E'\\.?[^.]*$', '') = coalesce(p_parent, ''));
      perform menzil._refuse_value(format('%s is not a key of the config of %s %s endpoint.', quote_literal(menzil._shown(v_path)), case when p_protocol ~ '^([aeio]|http|mqtt)' then 'an' else 'a' end, p_protocol),
        concat_ws(' ', coalesce(menzil._config_spelling(v_path, v_value), 'Did you mean ' || menzil._nearest_word(v_path, v_known) || '?'), format('Known keys here are %s.', array_to_string(v_known, ', '))));
    end if;
    v_type := jsonb_typeof(v_value);
    v_text := v_value #>> '{}';
    v_fits := case v_type when 'number' then v_text::numeric when 'string' then length(v_text) when 'array' then jsonb_array_length(v_value) end
              between coalesce(v_rule.minimum, 0) and v_rule.maximum;
    continue when v_rule.kind like 'limit%' and v_type = 'null'   -- null takes the limit off
               or v_rule.kind in ('secret', 'signing secret', 'private key', 'credentials') and menzil._is_sealed(v_value);
    v_wanted := case
      when v_rule.kind like '%object' and v_type <> 'object' then 'an object'
      when v_rule.kind = 'boolean' and v_type <> 'boolean' then 'true or false'
      when v_rule.kind = 'choice' and (v_type <> 'string' or v_text <> all (v_rule.choices)) then 'one of ' || array_to_string(v_rule.choices, ', ')
      when v_rule.kind = 'number' and (v_type <> 'number' or not v_fits) then format('a number from %s to %s', v_rule.minimum, v_rule.maximum)
      when v_rule.kind in ('integer', 'limit') and (v_type <> 'number' or not v_fits or v_text !~ '^[0-9]+$')
        then format('a whole number from %s to %s', v_rule.minimum, v_rule.maximum)
      when v_rule.kind in ('text', 'secret') and (v_type <> 'string' or not v_fits or v_text ~ '[[:cntrl:]]')
        then format('a text of %s %s characters without control characters', coalesce(v_rule.minimum || ' to', 'at most'), v_rule.maximum)
      when v_rule.kind = 'certificate' and (v_type <> 'string' or not v_fits or v_text !~ E'^[ \\t\\r\\n]*-----BEGIN CERTIFICATE-----\\r?\\n')
        or v_rule.kind = 'private key' and (v_type <> 'string' or not v_fits or v_text !~ E'^[ \\t\\r\\n]*-----BEGIN ([A-Z]+ )?PRIVATE KEY-----\\r?\\n')
        then format('a %s in PEM format', v_rule.kind)
      when v_rule.kind = 'statuses' and (v_type <> 'array' or not v_fits
             or exists (select 1 from jsonb_array_elements_text(v_value) s(status) where s.status !~ '^[2-5][0-9][0-9]$'))
        then 'a list of HTTP status codes from 200 to 599'
      when v_rule.kind = 'header names' and (v_type <> 'array' or not v_fits or exists (select 1 from jsonb_array_elements(v_value) e(name) where jsonb_typeof(e.name) <> 'string'))
        then format('a list of at most %s names of headers', v_rule.maximum)
      when v_rule.kind = 'host' and (v_type <> 'string' or not menzil._is_host(v_text))
        then 'a host name such as broker.example.com, or an address such as 192.0.2.1 or 2001:db8::1'
      when v_rule.kind = 'servers' and (v_type <> 'array' or not v_fits
             or exists (select 1 from jsonb_array_elements(v_value) e(server) where jsonb_typeof(e.server) <> 'string' or not menzil._is_server(e.server #>> '{}')))
        then format('a list of %s to %s servers such as "broker.example.com:%s"', v_rule.minimum, v_rule.maximum, case p_protocol when 'kafka' then 9092 else 4222 end)
      when v_rule.kind = 'subject' and (v_type <> 'string' or not v_fits or not menzil._is_subject(v_text))
        then 'a subject: words joined by dots, without spaces, *, > and a $ at its beginning'
      when v_rule.kind = 'topic' and (v_type <> 'string' or not menzil._is_topic(v_text))
        then 'a topic of 1 to 249 letters, digits, dots, underscores and hyphens, and neither . nor ..'
      when v_rule.kind = 'record key' and (v_type = 'object' and ((v_value - 'text') <> '{}' or jsonb_typeof(v_value -> 'text') is distinct from 'string'
               or length(v_value ->> 'text') not between v_rule.minimum and v_rule.maximum)
             or v_type <> 'object' and (v_type <> 'string' or v_text <> all (v_rule.choices)))
        then format('one of %s, or an object {"text": "..."} with %s to %s characters', array_to_string(v_rule.choices, ', '), v_rule.minimum, v_rule.maximum)
      when v_rule.kind = 'options' and v_type <> 'object' then 'an object'
      when v_rule.kind = 'values' and (v_type <> 'array' or not v_fits
             or exists (select 1 from jsonb_array_elements(v_value) e(value) where jsonb_typeof(e.value) <> 'string' or e.value #>> '{}' = '' or length(e.value #>> '{}') > 1024 or e.value #>> '{}' ~ '[[:cntrl:]]'))
        then format('a list of %s to %s texts without control characters', v_rule.minimum, v_rule.maximum)
      when v_rule.kind = 'credentials' and (v_type <> 'string' or not v_fits or v_text !~ '-----BEGIN NATS USER JWT-----.*-----BEGIN USER NKEY SEED-----')
        then 'the text of a credentials file of NATS'
      when v_rule.kind = 'signing secret' and (v_text ~ v_secret) is not true then v_standard
      when v_rule.kind = 'signing secrets' and (v_type <> 'array' or not v_fits) then format('a list of %s to %s secrets', v_rule.minimum, v_rule.maximum)
    end;
    if v_wanted is not null then
      perform menzil._refuse_config(v_path, 'must be ' || v_wanted, menzil._config_spelling(v_path, v_value));
    elsif v_rule.kind = 'signing secrets' then
      perform menzil._refuse_config(format('%s.%s', v_path, e.n - 1), 'must be ' || v_standard) from jsonb_array_elements(v_value) with ordinality e(value, n)
        where not menzil._is_sealed(e.value) and (e.value #>> '{}' ~ v_secret) is not true;
    elsif v_rule.kind = 'url' then
      perform menzil._check_url(v_path, v_value);
    elsif v_rule.kind = 'headers' then
      perform menzil._check_config_headers(v_path, v_value, v_rule.maximum::integer);
    elsif v_rule.kind like '%object' then
      perform menzil._check_config(p_protocol, v_value, v_path);
    end if;
  end loop;
end $$;

-- A host name, or an address in its usual spelling. A host that ends in a number is an address of version 4: 127.1, 0x7f000001 and
-- the like are names to some readers and addresses to others. A dot at the end makes another name of the same host.
create or replace function menzil._is_host(p_host text) returns boolean
language plpgsql immutable as $$
begin
  return coalesce(case
    when p_host like '%:%' then btrim(p_host, '[]') ~ '^[0-9A-Fa-f:.]+$' and family(btrim(p_host, '[]')::inet) = 6
    when p_host ~* E'(^|\\.)([0-9]+|0x[0-9a-f]*)$' then p_host ~ E'^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\\.(?!$)|$)){4}$'
    else length(p_host) <= 253 and p_host ~ E'^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\\.(?!$)|$))+$' end, false);
exception when invalid_text_representation then
  return false;
end $$;

-- A host with an optional port; an address of version 6 is in brackets.
create or replace function menzil._is_server(p_server text) returns boolean
language sql immutable as $$
  select coalesce((select menzil._is_host(p.part[1]) and coalesce(p.part[2]::integer between 1 and 65535, true)
                     from regexp_match(p_server, E'^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?$') p(part)), false)
$$;

-- A URL, read strictly: what two parsers might read differently is refused, so that the worker connects to the host
-- that was meant. Which addresses the host may have is judged by the worker, after it has resolved the name.
create or replace function menzil._check_url(p_path text, p_value jsonb) returns void
language plpgsql stable as $$
declare
  v_url text := p_value #>> '{}';
  v_parts text[] := regexp_match(v_url, E'^(https?)://(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?:[/?][^\\[\\]]*)?$', 'i');   -- scheme, host, port
  v_host text := v_parts[2];
  v_wrong record;
begin
  select r.what, r.hint into v_wrong from (values
      (jsonb_typeof(p_value) <> 'string', 'must be a URL', null),
      (length(v_url) > 2048, 'is longer than 2048 characters', null),
      (v_url ~ E'[^A-Za-z0-9._~:/?#\\[\\]@!$&''()*+,;=%-]' or v_url ~ '%(?![0-9A-Fa-f]{2})', 'has a character that a URL may not have',
       'Percent-encode spaces and other characters of the path; write international host names in punycode.'),
      (v_url ~ '^[A-Za-z]+://[^/?#]*@', 'may not carry a user name or password', 'Put credentials into auth.'),
      (v_url ~ '#', 'may not have a fragment', 'Leave out # and what follows: it is never sent.'),
      (v_parts is null, 'must be http:// or https://, a host, an optional port and a path', 'For instance https://example.com:8443/hook.'),
      (v_parts[3]::integer not between 1 and 65535, 'has a port outside 1 to 65535', null),
      (not menzil._is_host(v_host), 'has a host that cannot exist',
       'Labels of a host name have 1 to 63 characters, without a dot after the last; addresses are written 192.0.2.1 or [2001:db8::1].'),
      (lower(v_parts[1] collate "C") = 'http' and p_path <> 'proxy.url' and not (select s.http_allow_http from menzil.setting_value s), 'must be https://',
       'The setting http_allow_http allows http://.')
    ) r(wrong, what, hint) where r.wrong limit 1;
  if found then
    perform menzil._refuse_config(p_path, v_wrong.what, v_wrong.hint);
  end if;
end $$;

-- Headers that every request to an endpoint carries. Some belong to the connection or are made by the worker itself.
create or replace function menzil._check_config_headers(p_path text, p_value jsonb, p_maximum integer) returns void
language plpgsql stable as $$
declare
  v_wrong record;
begin
  if jsonb_typeof(p_value) <> 'object' then
    perform menzil._refuse_config(p_path, 'must be an object of names and values');
  elsif (select count(*) from jsonb_object_keys(p_value)) > p_maximum then
    perform menzil._refuse_config(p_path, format('has more than %s headers', p_maximum));
  end if;
  select r.name, r.what, r.hint into v_wrong
    from jsonb_each_text(p_value) h cross join lateral (values
      (1, h.key, menzil._is_forbidden_header(h.key),
       'may not be set', 'It belongs to the connection or is set by menzil itself.'),
      (2, h.key, h.value !~ E'^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$' and h.value <> '', 'must be ASCII text without spaces at its ends', null),
      (3, lower(h.key collate "C"), exists (select 1 from jsonb_object_keys(p_value) o(name) where o.name <> h.key and lower(o.name collate "C") = lower(h.key collate "C")),
       'is given twice', 'Header names do not distinguish upper and lower case.')
    ) r(n, name, wrong, what, hint) where r.wrong order by r.n limit 1;
  if found then
    perform menzil._refuse_config(format('%s.%s', p_path, v_wrong.name), v_wrong.what, v_wrong.hint);
  end if;
  -- A mark stands for a stored value, which was checked when it came; an encrypted one was checked by the client.
  perform menzil._check_headers(coalesce((select jsonb_object_agg(h.key, h.value) from jsonb_each(p_value) h
                                           where not (menzil._is_secret_header(h.key) and menzil._is_sealed(h.value))
                                             and not menzil._is_forbidden_header(h.key)), '{}'));
end $$;
