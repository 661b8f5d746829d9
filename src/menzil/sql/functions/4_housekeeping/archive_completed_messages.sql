-- A message is in the archive of its month from the moment it is sent. What lies in the default partition, because its month
-- had no partition, moves to its month, which is made; only messages that ended more than p_older_than_seconds ago make a
-- month due. Whole months, until p_batch_size rows are reached. Returns how many moved.
create or replace function menzil.archive_completed_messages(p_older_than_seconds integer default 3600, p_batch_size integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set timezone = 'UTC' set lock_timeout = '50ms' set jit = off as $$
declare
  v_before timestamptz := clock_timestamp() - p_older_than_seconds * interval '1 s';
  v_month record;
  v_count integer := 0;
begin
  if p_older_than_seconds is null then
    perform menzil._refuse_null('An age in seconds');
  elsif p_older_than_seconds < 0 then
    perform menzil._refuse_value(format('An age of %s seconds is out of range, it must be 0 or more.', p_older_than_seconds), 'Use 3600.');
  end if;
  perform menzil._check_limit(p_batch_size, 1000000);
  for v_month in
    select menzil._month_of(d.created_at) as starts, count(*)::integer as strays from menzil.archive_default d
     where (menzil._end_of(d.id)).ended_at <= v_before group by 1 order by 1
  loop
    exit when v_count >= p_batch_size;
    if to_regclass('menzil.archive_' || to_char(v_month.starts, 'YYYY_MM')) is null then
      delete from menzil.archive_month a where a.month_start = v_month.starts;   -- it speaks of a partition that is gone
      if menzil._make_archive_month(v_month.starts) > 0 then
        v_count := v_count + v_month.strays;
      end if;
    end if;
  end loop;
  return v_count;
exception when lock_not_available or deadlock_detected then
  return 0;   -- another transaction reads the archive; the next call tries again
end $$;
