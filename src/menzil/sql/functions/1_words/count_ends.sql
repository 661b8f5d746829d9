-- Adds to the register of ended messages. One message costs no record of its own in the WAL: nextval writes one in 32 calls.
create or replace function menzil._count_ends(p_n integer) returns bigint
language sql volatile
return case when p_n = 1 then nextval('menzil.ended_count') else setval('menzil.ended_count', nextval('menzil.ended_count') + p_n - 1) end;
