-- The month of a time that a message can have been created at, or a refusal.
create or replace function menzil._exported_month(p_month timestamptz) returns timestamptz
language plpgsql immutable as $$
begin
  if p_month is null then
    perform menzil._refuse_null('A month');
  elsif p_month not between '0001-01-02' and '9999-12-31' then
    perform menzil._refuse_value('A month must lie in the years 1 to 9999.', 'Pass a month that menzil.archive_months() names.');
  end if;
  return menzil._month_of(p_month);
end $$;
