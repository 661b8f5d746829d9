-- The zone itself, or a refusal. PostgreSQL also takes abbreviations and POSIX rules ('FOO+3'), which know nothing of
-- clock changes or hide a misspelt name. Reading pg_timezone_names opens every file of the zone database, so it is
-- asked only when it must be: a name with a slash and without digits is neither abbreviation nor POSIX rule.
create or replace function menzil._time_zone(p_time_zone text) returns text
language plpgsql immutable as $$
begin
  if p_time_zone is null then
    perform menzil._refuse_null('A time zone');
  elsif p_time_zone = 'UTC' then
    return p_time_zone;
  elsif p_time_zone ~ '^[A-Za-z_]+(/[A-Za-z_-]+)+$' then
    perform to_timestamp(0) at time zone p_time_zone;
    return p_time_zone;
  elsif exists (select 1 from pg_timezone_names z where lower(z.name) = lower(p_time_zone)) then
    return p_time_zone;
  end if;
  raise invalid_parameter_value;
exception when invalid_parameter_value then
  raise exception using errcode = '22023', message = format('There is no time zone named %s.', quote_literal(menzil._shown(p_time_zone))),
    hint = 'Use a name from pg_timezone_names, for instance Europe/Istanbul or UTC.';
end $$;
