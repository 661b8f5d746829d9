-- The first month (UTC) that is kept: the current one, and p_months whole ones before it.
create or replace function menzil._archive_horizon(p_now timestamptz, p_months integer) returns timestamptz
language sql immutable parallel safe
return (date_trunc('month', p_now at time zone 'UTC') - p_months * interval '1 month') at time zone 'UTC';
