-- The first month (UTC) that is kept: the current one, and p_months whole ones before it.
create or replace function menzil._archive_horizon(p_now timestamptz, p_months integer) returns timestamptz
language sql immutable parallel safe
return (date_trunc('month', p_now at time zone 'UTC') - p_months * interval '1 month') at time zone 'UTC';

-- Drops the months of the archive that are older than p_retention_months, NULL for the setting archive_retention_months.
-- A month in which a live message was created stays, and so does one that is being read: the next call tries again.
-- Dropping a partition locks the whole archive, so settles and readers wait: for the moment it takes, and before it for at
-- most a twentieth of a second, in which the lock is had or given up. Returns how many.
create or replace function menzil.cleanup_old_archive_partitions(p_retention_months integer default null) returns integer
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set lock_timeout = '50ms' set jit = off as $$
declare
  v_horizon timestamptz;
  v_old timestamptz[];
  v_month timestamptz;
  v_count integer := 0;
begin
  if p_retention_months not between 1 and 120 then
    perform menzil._refuse_value(format('A retention of %s months is out of range, it must be 1 to 120.', p_retention_months),
      'NULL uses the setting archive_retention_months.');
  end if;
  v_horizon := (select menzil._archive_horizon(clock_timestamp(), coalesce(p_retention_months, s.archive_retention_months)) from menzil.setting_value s);
  v_old := array(select a.month_start from menzil.archive_month a where a.month_start < v_horizon);
  if v_old <> '{}' then   -- reads all live messages, before anything is locked
    v_old := array(select u.month from unnest(v_old) u(month)
                   except select menzil._month_of(m.created_at) from menzil.message m where m.created_at < v_horizon order by 1);
  end if;
  if v_old = '{}' then
    return 0;
  end if;
  lock table only menzil.archive in access exclusive mode;   -- before its partitions, as readers do: nobody waits in a circle
  foreach v_month in array v_old loop
    v_count := v_count + menzil._drop_archive_month(v_month);
  end loop;
  return v_count;
exception when lock_not_available then
  return 0;
end $$;

create or replace function menzil._drop_archive_month(p_month timestamptz) returns integer
language plpgsql as $$
declare
  v_name text := 'archive_' || to_char(p_month at time zone 'UTC', 'YYYY_MM');
  v_rows bigint;
begin
  select c.reltuples::bigint into v_rows from pg_class c where c.oid = to_regclass('menzil.' || v_name);
  if v_rows is not null then
    execute format('lock table menzil.%I in access exclusive mode nowait', v_name);
    execute format('select menzil._feed_dropped(''archive'', f.ended_xid, f.id) from (
                      select a.ended_xid, a.id from menzil.%I a order by a.ended_xid desc, a.id desc limit 1) f', v_name);
    execute format('drop table menzil.%I', v_name);
    perform menzil._event('archive.dropped', 'archive', v_name, null, null, jsonb_build_object('about_messages', greatest(v_rows, 0)));
  end if;
  -- A message that ends later makes its month again.
  delete from menzil.archive_month a where a.month_start = p_month;
  return (v_rows is not null)::integer;
exception when lock_not_available then
  return 0;
end $$;
