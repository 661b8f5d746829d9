-- A cron expression as sets of numbers: five fields or a macro. A field is a list of *, number, name or range, and
-- after * or a range a /step. Sunday is 0 and 7. The three flags keep what the sets cannot say, as cron means it by
-- a field that begins with *: day_any and weekday_any decide how the two day fields combine, time_any (minute or
-- hour) what happens when clocks change.
create or replace function menzil.cron_parse(
  p_cron text,
  out minutes integer[], out hours integer[], out days integer[], out months integer[], out weekdays integer[],
  out day_any boolean, out weekday_any boolean, out time_any boolean
)
language plpgsql immutable security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_cron text := lower(btrim(p_cron, E' \t') collate "C");
  v_fields text[];
begin
  if p_cron is null then
    perform menzil._refuse_null('A cron expression');
  elsif length(p_cron) > 500 then
    perform menzil._refuse_value('A cron expression has at most 500 characters.', 'Use ranges and steps instead of long lists.');
  end if;
  v_cron := coalesce('{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
                       "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}'::jsonb ->> v_cron, v_cron);
  v_fields := regexp_split_to_array(v_cron, E'[ \\t]+');
  if v_cron like '@%' then
    perform menzil._refuse_value(format('%s is not a cron macro.', quote_literal(menzil._shown(v_cron))),
      'Use @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually, or five fields.');
  elsif cardinality(v_fields) <> 5 or v_cron = '' then
    perform menzil._refuse_value(format('A cron expression has five fields, this one has %s.', case v_cron when '' then 0 else cardinality(v_fields) end),
      'Write minute, hour, day of month, month and weekday, for instance 30 9 * * MON-FRI.');
  end if;
  minutes := menzil._cron_field(v_fields[1], 'minute', 0, 59);
  hours := menzil._cron_field(v_fields[2], 'hour', 0, 23);
  days := menzil._cron_field(v_fields[3], 'day of month', 1, 31);
  months := menzil._cron_field(v_fields[4], 'month', 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
  weekdays := menzil._cron_field(v_fields[5], 'weekday', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
  day_any := v_fields[3] like '*%';
  weekday_any := v_fields[5] like '*%';
  time_any := v_fields[1] like '*%' or v_fields[2] like '*%';
end $$;

-- One field as an ascending set of numbers. Names count from the field's minimum.
create or replace function menzil._cron_field(p_text text, p_field text, p_minimum integer, p_maximum integer, p_names text[] default '{}')
returns integer[]
language plpgsql immutable as $$
declare
  v_item text;
  v_parts text[];   -- star, from, to, step
  v_from integer;
  v_to integer;
  v_step integer;
  v_set integer[] := '{}';
begin
  foreach v_item in array string_to_array(p_text, ',') loop
    v_parts := regexp_match(v_item, E'^(?:(\\*)|([a-z0-9]+)(?:-([a-z0-9]+))?)(?:/([0-9]{1,4}))?$');
    if v_parts is null then
      perform menzil._refuse_cron(v_item, p_field, 'Use *, a number, a range such as 1-5, a step such as */10, or a list of these.');
    elsif v_parts[4] is not null and v_parts[1] is null and v_parts[3] is null then
      perform menzil._refuse_cron(v_item, p_field, format('A step follows * or a range: write %s-%s/%s.', v_parts[2], p_maximum, v_parts[4]));
    end if;
    v_from := coalesce(menzil._cron_number(v_parts[2], v_item, p_field, p_minimum, p_maximum, p_names), p_minimum);
    v_to := case
      when v_parts[1] is not null then p_maximum
      when v_parts[3] = 'sun' and p_field = 'weekday' and v_from > 0 then 7   -- FRI-SUN runs to the end of the week
      else coalesce(menzil._cron_number(v_parts[3], v_item, p_field, p_minimum, p_maximum, p_names), v_from)
    end;
    v_step := coalesce(v_parts[4]::integer, 1);
    if v_to < v_from then
      perform menzil._refuse_cron(v_item, p_field, 'Write a range from the lower to the higher value, or two ranges with a comma.');
    elsif v_step < 1 or v_step > p_maximum then
      perform menzil._refuse_cron(v_item, p_field, format('A step in this field is 1 to %s.', p_maximum));
    end if;
    v_set := v_set || array(select g.n from generate_series(v_from, v_to, v_step) g(n));
  end loop;
  return array(select distinct case when p_field = 'weekday' then u.n % 7 else u.n end from unnest(v_set) u(n) order by 1);
end $$;

create or replace function menzil._cron_number(p_word text, p_item text, p_field text, p_minimum integer, p_maximum integer, p_names text[])
returns integer
language plpgsql immutable as $$
declare
  v_number integer;
begin
  if p_word is null then
    return null;
  end if;
  v_number := case when p_word ~ '^[0-9]{1,4}$' then p_word::integer else array_position(p_names, p_word) - 1 + p_minimum end;
  if v_number is null or v_number not between p_minimum and p_maximum then
    perform menzil._refuse_cron(p_item, p_field, format('Values of this field are %s to %s%s.', p_minimum, p_maximum,
      case when p_names <> '{}' then format(' or %s to %s', upper(p_names[1] collate "C"), upper(p_names[cardinality(p_names)] collate "C")) end));
  end if;
  return v_number;
end $$;

create or replace function menzil._refuse_cron(p_item text, p_field text, p_hint text) returns void
language plpgsql immutable as $$
begin
  raise exception using errcode = '22023', message = format('%s is wrong in the %s field of a cron expression.', quote_literal(menzil._shown(p_item)), p_field),
    hint = p_hint;
end $$;
