-- Monthly partitions of message, by the month (UTC) a message was created in.

create or replace function menzil._month_of(p_at timestamptz) returns timestamptz
language sql immutable parallel safe
return date_trunc('month', p_at at time zone 'UTC') at time zone 'UTC';
