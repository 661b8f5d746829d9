-- The URLs of a config that carry a credential in their query. hidden: it came back as people see it, with *** for the credential.
create or replace function menzil._credential_urls(p_protocol text, p_config jsonb) returns table (path text[], url text, hidden boolean)
language sql stable as $$
  select u.path, p_config #>> u.path, p_config #>> u.path ~ E'[?&]([^=&]*=)?\\*\\*\\*(&|$)'
    from (select string_to_array(r.path, '.') as path from menzil._config_rules(p_protocol) r where r.kind = 'url') u
   where strpos(p_config #>> u.path, '?') > 0
     and (menzil._shown_url(p_config #>> u.path) <> p_config #>> u.path or p_config #>> u.path ~ E'[?&]([^=&]*=)?\\*\\*\\*(&|$)')
$$;
