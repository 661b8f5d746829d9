-- The next instant strictly after p_after that a cron expression names in a time zone; null when it names none within
-- 50 years (no 30 February; the rarest real date, a 29 February on a given weekday, returns within 40).
--
-- When clocks change, as cron does it:
--   minute and hour both fixed   a time that was skipped fires once, at the first instant after the gap;
--                                a time that comes twice fires the first time only
--   minute or hour begin with *  every time the clock really shows it: not in the gap, and twice in the overlap
create or replace function menzil.cron_next(p_cron text, p_time_zone text, p_after timestamptz) returns timestamptz
language plpgsql immutable security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_cron record;
  v_wall timestamp;
  v_until timestamp;
  v_instants record;
  v_second timestamptz;   -- the earliest second showing of a time that was already shown once
begin
  -- PostgreSQL also takes abbreviations and POSIX rules ('FOO+3'), which know nothing of clock changes or hide a misspelt name.
  -- Reading pg_timezone_names opens every file of the zone database, so it is asked only when it must be: a name with a slash
  -- and without digits is neither abbreviation nor POSIX rule.
  begin
    if p_time_zone is null then
      perform menzil._refuse_null('A time zone');
    elsif p_time_zone ~ '^[A-Za-z_]+(/[A-Za-z_-]+)+$' then
      perform to_timestamp(0) at time zone p_time_zone;
    elsif p_time_zone <> 'UTC' and not exists (select 1 from pg_timezone_names z where lower(z.name collate "C") = lower(p_time_zone collate "C")) then
      raise invalid_parameter_value;
    end if;
  exception when invalid_parameter_value then
    raise exception using errcode = '22023', message = format('There is no time zone named %s.', quote_literal(menzil._shown(p_time_zone))),
      hint = 'Use a name from pg_timezone_names, for instance Europe/Istanbul or UTC.';
  end;
  if p_after is null then
    perform menzil._refuse_null('A time to look from');
  elsif p_after not between '0001-01-02' and '9999-12-31' then
    perform menzil._refuse_value('The time to look from must lie in the years 1 to 9999.', 'Pass a real time, such as now().');
  end if;
  v_cron := menzil.cron_parse(p_cron);
  v_wall := date_trunc('minute', p_after at time zone p_time_zone);
  v_until := least(v_wall + interval '50 years', '9999-12-31');
  if v_cron.time_any then
    -- Just before the clock is set back, times earlier on the wall are still to come.
    v_wall := v_wall - greatest(menzil._utc_offset(p_after, p_time_zone) - menzil._utc_offset(p_after + interval '25 hours', p_time_zone), interval '0');
  end if;
  loop
    v_wall := menzil._cron_wall(v_wall, v_until, v_cron.minutes, v_cron.hours, v_cron.days, v_cron.months, v_cron.weekdays,
                                v_cron.day_any or v_cron.weekday_any);
    if v_wall is null then
      return v_second;
    end if;
    v_instants := menzil._wall_instants(v_wall, p_time_zone);
    if v_instants.in_gap and v_cron.time_any then
      v_wall := greatest(v_wall + interval '1 minute', date_trunc('minute', v_instants.first_at at time zone p_time_zone));
      continue;
    elsif v_instants.first_at > p_after then
      return least(v_instants.first_at, v_second);
    elsif v_cron.time_any and v_instants.last_at > p_after then
      v_second := coalesce(v_second, v_instants.last_at);
    end if;
    v_wall := v_wall + interval '1 minute';
  end loop;
end $$;
