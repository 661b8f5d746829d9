-- " by ada since 2026-01-01 00:00:00 UTC": who did it and when, as far as the event log still knows.
create or replace function menzil._by_since(p_actor text, p_since timestamptz) returns text
language sql stable parallel safe
return coalesce(' by ' || menzil._shown(p_actor), '') || coalesce(' since ' || menzil._time_text(p_since), '');
