-- The first time on the clock on the wall, at or after p_from, that a cron expression names; null when there is none
-- up to p_until. Jumps over months and hours, walks over days only inside a month that can match.
create or replace function menzil._cron_wall(
  p_from timestamp, p_until timestamp,
  p_minutes integer[], p_hours integer[], p_days integer[], p_months integer[], p_weekdays integer[], p_both boolean
) returns timestamp
language plpgsql immutable as $$
declare
  v_day date := p_from::date;
  v_hour integer := extract(hour from p_from);
  v_minute integer := extract(minute from p_from);
  v_next_month date;
  v_in_days boolean;
  v_in_weekdays boolean;
  v_found integer;
begin
  while v_day <= p_until loop
    v_next_month := date_trunc('month', v_day::timestamp) + interval '1 month';
    -- p_both: the day must be in both sets, so a month that is too short for the least day needs no walk.
    if extract(month from v_day) <> all (p_months) or (p_both and p_days[1] > extract(day from v_next_month - 1)) then
      v_day := v_next_month;
    else
      v_in_days := extract(day from v_day) = any (p_days);
      v_in_weekdays := extract(dow from v_day) = any (p_weekdays);
      if (v_in_days and v_in_weekdays) or (not p_both and (v_in_days or v_in_weekdays)) then
        if v_hour = any (p_hours) then
          v_found := (select min(u.n) from unnest(p_minutes) u(n) where u.n >= v_minute);
          if v_found is not null then
            return v_day + make_time(v_hour, v_found, 0);
          end if;
        end if;
        v_found := (select min(u.n) from unnest(p_hours) u(n) where u.n > v_hour);
        if v_found is not null then
          return v_day + make_time(v_found, p_minutes[1], 0);
        end if;
      end if;
      v_day := v_day + 1;
    end if;
    v_hour := 0;
    v_minute := 0;
  end loop;
  return null;
end $$;
