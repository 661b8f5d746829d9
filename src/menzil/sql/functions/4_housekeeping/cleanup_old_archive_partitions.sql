-- Drops the months of the archive that are older than p_retention_months, NULL for the setting archive_retention_months.
-- A month in which a live message was created stays, and so does one that is being read: the next call tries again.
-- PostgreSQL takes an ACCESS EXCLUSIVE lock on message to drop a partition, and keeps it until the transaction ends: no
-- function can avoid that, because DETACH CONCURRENTLY does not run inside a function. Other transactions wait meanwhile.
-- So call it in a transaction of its own, as the job does. The lock is waited for at most a twentieth of a second; what
-- takes time is done before it. Returns how many.
create or replace function menzil.cleanup_old_archive_partitions(p_retention_months integer default null) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set lock_timeout = '50ms' set jit = off as $$
declare
  v_horizon timestamptz;
  v_old timestamptz[];
  v_lasts menzil.feed_drop[];
  v_count integer := 0;
begin
  if p_retention_months not between 1 and 120 then
    perform menzil._refuse_value(format('A retention of %s months is out of range, it must be 1 to 120.', p_retention_months),
      'NULL uses the setting archive_retention_months.');
  end if;
  v_horizon := (select menzil._archive_horizon(clock_timestamp(), coalesce(p_retention_months, s.archive_retention_months)) from menzil.setting_value s);
  v_old := array(select a.month_start from menzil.archive_month a where a.month_start < v_horizon);
  if v_old <> '{}' then   -- before anything is locked
    v_old := array(select u.month from unnest(v_old) u(month) where not menzil._month_stays(u.month) order by 1);
  end if;
  if v_old = '{}' then
    return 0;
  end if;
  v_lasts := array(select menzil._last_end(u.month) from unnest(v_old) with ordinality u(month, n) order by u.n);
  lock table only menzil.message in access exclusive mode;   -- before its partitions, as readers do: no deadlock
  for v_n in 1 .. cardinality(v_old) loop
    v_count := v_count + menzil._drop_archive_month(v_old[v_n], v_lasts[v_n]);
  end loop;
  return v_count;
-- Two calls at once read the table first and then want it alone: PostgreSQL reports that as a deadlock without waiting.
exception when lock_not_available or deadlock_detected then
  return 0;
end $$;
