-- Microseconds since 1970, the unit of the time registers.
create or replace function menzil._microseconds(p_at timestamptz) returns bigint
language sql stable parallel safe   -- as its parts are: only then does the planner put it in place of a call
return (date_part('epoch', p_at) * 1000000)::bigint;   -- date_part, not extract: floats are quicker than numerics
