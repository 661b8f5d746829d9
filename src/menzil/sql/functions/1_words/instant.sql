-- The time of a register that counts microseconds since 1970.
create or replace function menzil._instant(p_microseconds bigint) returns timestamptz
language sql stable parallel safe   -- as its parts are: only then does the planner put it in place of a call
return timestamptz 'epoch' + p_microseconds * interval '1 us';
