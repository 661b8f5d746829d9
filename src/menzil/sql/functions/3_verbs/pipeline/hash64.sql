create or replace function menzil._hash64(p_text text) returns bigint
language sql stable parallel safe
return ('x' || substr(md5(convert_to(p_text, 'UTF8')), 1, 16))::bit(64)::bigint;
