-- The fault of a value that breaks a keyword: the rule, and an empty pointer that grows on the way out.
create or replace function menzil._broken(p_keyword text, p_rule jsonb) returns text[]
language sql immutable parallel safe
return array[concat_ws(' ', p_keyword, left(p_rule::text, 100)), ''];
