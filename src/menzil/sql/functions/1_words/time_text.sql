-- A time as it stands in a sentence, the same in every session.
create or replace function menzil._time_text(p_at timestamptz) returns text
language sql stable parallel safe
return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC';
