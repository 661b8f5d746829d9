-- Makes this month's partition and those of the next p_months_ahead months. Returns how many were missing. Where another
-- transaction keeps the table from being locked for a moment it makes none and says 0: the next call tries again. Call it in
-- a transaction of its own: until that ends, calls that find a message by its id wait (menzil._make_archive_month says why).
create or replace function menzil.maintain_archive_partitions(p_months_ahead integer default 3) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set lock_timeout = '200ms' as $$
begin
  perform menzil._refuse_null('A number of months') where p_months_ahead is null;
  perform menzil._refuse_value('Months ahead must be 0 to 120.', 'Use 3.') where p_months_ahead not between 0 and 120;
  return menzil._ensure_archive_months(clock_timestamp(), p_months_ahead);
exception when lock_not_available or deadlock_detected then
  return 0;
end $$;
