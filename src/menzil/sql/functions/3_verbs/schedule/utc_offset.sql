create or replace function menzil._utc_offset(p_at timestamptz, p_time_zone text) returns interval
language sql immutable
return (p_at at time zone p_time_zone) - (p_at at time zone 'UTC');
