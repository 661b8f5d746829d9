-- A value from outside as it may stand in a message: one line, not endless.
create or replace function menzil._shown(p_value text) returns text
language sql immutable parallel safe
return regexp_replace(left(p_value, 200), E'[[:cntrl:]\\u2028\\u2029]', ' ', 'g');
