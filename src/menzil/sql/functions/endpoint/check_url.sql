-- A URL, read strictly: what two parsers might read differently is refused, so that the worker connects to the host
-- that was meant. Which addresses the host may have is judged by the worker, after it has resolved the name.
create or replace function menzil._check_url(p_path text, p_value jsonb) returns void
language plpgsql stable as $$
declare
  v_url text := p_value #>> '{}';
  v_parts text[];   -- scheme, host, port
  v_host text;
begin
  if jsonb_typeof(p_value) <> 'string' then
    perform menzil._refuse_config(p_path, 'must be a URL');
  elsif length(v_url) > 2048 then
    perform menzil._refuse_config(p_path, 'is longer than 2048 characters');
  elsif v_url ~ '[^A-Za-z0-9._~:/?#\[\]@!$&''()*+,;=%-]' or v_url ~ '%(?![0-9A-Fa-f]{2})' then
    perform menzil._refuse_config(p_path, 'has a character that a URL may not have',
      'Percent-encode spaces and other characters of the path; write international host names in punycode.');
  elsif v_url ~ '^[A-Za-z]+://[^/?#]*@' then
    perform menzil._refuse_config(p_path, 'may not carry a user name or password', 'Put credentials into auth.');
  elsif v_url ~ '#' then
    perform menzil._refuse_config(p_path, 'may not have a fragment', 'Leave out # and what follows: it is never sent.');
  end if;
  v_parts := regexp_match(v_url, '^(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?:[/?][^\[\]]*)?$', 'i');
  v_host := v_parts[2];
  if v_parts is null then
    perform menzil._refuse_config(p_path, 'must be http:// or https://, a host, an optional port and a path', 'For instance https://example.com:8443/hook.');
  elsif v_parts[3]::integer not between 1 and 65535 then
    perform menzil._refuse_config(p_path, 'has a port outside 1 to 65535');
  elsif not menzil._is_host(v_host) then
    perform menzil._refuse_config(p_path, 'has a host that cannot exist', 'Labels of a host name have 1 to 63 characters, without a dot after the last; addresses are written 192.0.2.1 or [2001:db8::1].');
  elsif lower(v_parts[1]) = 'http' and p_path <> 'proxy.url' and not (select s.http_allow_http from menzil.setting_value s) then
    perform menzil._refuse_config(p_path, 'must be https://', 'The setting http_allow_http allows http://.');
  end if;
end $$;

-- A host that ends in a number is an address of version 4 in its usual spelling: 127.1, 0x7f000001 and the like are
-- names to some readers and addresses to others. A dot at the end makes another name of the same host.
create or replace function menzil._is_host(p_host text) returns boolean
language plpgsql immutable as $$
begin
  if p_host like '[%' then
    return family(btrim(p_host, '[]')::inet) = 6;
  elsif p_host ~* '(^|\.)([0-9]+|0x[0-9a-f]*)$' then
    return p_host ~ '^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\.(?!$)|$)){4}$';
  end if;
  return length(p_host) <= 253 and p_host ~ '^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$';
exception when invalid_text_representation then
  return false;
end $$;
