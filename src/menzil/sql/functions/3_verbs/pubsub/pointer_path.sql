-- A JSON pointer as the path that jsonb takes.
create or replace function menzil._pointer_path(p_pointer text) returns text[]
language sql immutable parallel safe
return array(select replace(replace(u.step, '~1', '/'), '~0', '~')
               from unnest(string_to_array(substr(p_pointer, 2), '/')) with ordinality u(step, n) order by u.n);
