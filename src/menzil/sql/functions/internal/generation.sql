-- The generation of the arrival log that is written now. Each is current for two seconds and then rests for six,
-- so that a rested one can be folded empty and truncated while senders append elsewhere.
create or replace function menzil._generation(p_now timestamptz) returns smallint
language sql immutable parallel safe
return ((date_part('epoch', p_now)::bigint >> 1) & 3)::smallint;
