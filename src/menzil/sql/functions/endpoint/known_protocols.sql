-- The protocols an endpoint can have. A new one is added here and in _config_rules.
create or replace function menzil.known_protocols() returns text[]
language sql immutable parallel safe security definer
set search_path = pg_catalog, menzil, pg_temp
return array['http'];
