-- A value as it is stored, or a refusal. Bytes may be written as 64kB or 1 MB, seconds as 30s, 5 min or 2 hours.
create or replace function menzil._setting_value(p_name text, p_unit text, p_minimum bigint, p_maximum bigint, p_value text) returns text
language plpgsql stable as $$
declare
  v_text text := btrim(p_value, E' \t\n');
  v_number numeric;
  v_hint text := case p_unit
    when 'boolean' then 'Use true or false.'
    when 'networks' then 'Write networks such as 10.0.0.0/8, fd00::/8, separated by commas; an empty text allows none.'
    when 'patterns' then 'Write names of keys such as password or *token*, and paths such as $.card.*, separated by commas; an empty text hides nothing.'
    when 'words' then 'Use show, redact or hide.'
    when 'bytes' then 'Use a number of bytes, or one with a unit such as 64kB or 1MB.'
    when 'seconds' then 'Use a whole number of seconds, or one with a unit such as 30s or 5 min.'
    else 'Use a whole number.'
  end;
begin
  if p_unit = 'boolean' and lower(v_text collate "C") in ('true', 'on', 'yes', '1') then
    return 'true';
  elsif p_unit = 'boolean' and lower(v_text collate "C") in ('false', 'off', 'no', '0') then
    return 'false';
  elsif p_unit = 'networks' then
    -- cidr refuses 10.1.2.3/8: a network whose address has bits outside its mask is a mistake.
    return (select coalesce(string_agg(u.part::cidr::text, ', ' order by u.n), '')
              from regexp_split_to_table(v_text, E'[\\s,]+') with ordinality u(part, n) where u.part <> '');
  elsif p_unit = 'patterns' and length(v_text) <= 4000 and v_text !~ E'[\\x01-\\x08\\x0b-\\x1f\\x7f]' then
    return menzil._redact_patterns(v_text, v_hint);
  elsif p_unit = 'words' and lower(v_text collate "C") in ('show', 'redact', 'hide') then
    return lower(v_text collate "C");
  elsif p_unit not in ('boolean', 'patterns', 'words') then
    v_number := case
      when v_text ~ '^[+-]?[0-9]{1,18}$' then v_text::numeric
      when p_unit = 'bytes' and v_text ~* '^[0-9]{1,9} ?(bytes|kB|MB)$' then pg_size_bytes(v_text)
      when p_unit = 'seconds' then extract(epoch from v_text::interval)
    end;
    if v_number between p_minimum and p_maximum and v_number = trunc(v_number) then
      return trunc(v_number)::text;
    elsif v_number = trunc(v_number) then
      perform menzil._refuse_value(format('The setting %s must be %s to %s %s, %s was given.', p_name, p_minimum, p_maximum, p_unit,
        menzil._shown(v_text)), 'The view menzil.settings shows the range of each setting.');
    end if;
  end if;
  raise invalid_text_representation;
exception when invalid_text_representation or invalid_datetime_format or datetime_field_overflow or interval_field_overflow
            or numeric_value_out_of_range then
  perform menzil._refuse_value(format('%s is not a value for the setting %s.', quote_literal(menzil._shown(v_text)), p_name), v_hint);
end $$;
