create or replace function menzil._is_secret_mark(p_value jsonb) returns boolean
language sql immutable parallel safe
return p_value = '{"$secret": true}'::jsonb;
