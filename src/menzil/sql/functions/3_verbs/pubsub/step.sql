-- A key as one step of a JSON pointer.
create or replace function menzil._step(p_key text) returns text
language sql immutable parallel safe
return '/' || replace(replace(p_key, '~', '~0'), '/', '~1');
