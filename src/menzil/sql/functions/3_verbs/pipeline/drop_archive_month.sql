-- Drops the partition of a month. The caller holds an ACCESS EXCLUSIVE lock on message and says where the ends of the month
-- are in the feed (menzil._last_end): finding that takes longer than the lock may be held. Returns how many were dropped.
create or replace function menzil._drop_archive_month(p_month timestamptz, p_last menzil.feed_drop) returns integer
language plpgsql set lock_timeout = '50ms' as $$
declare
  v_name text := 'archive_' || to_char(p_month at time zone 'UTC', 'YYYY_MM');
  v_rows bigint;
begin
  select c.reltuples::bigint into v_rows from pg_class c where c.oid = to_regclass('menzil.' || v_name);
  if v_rows is not null then
    execute format('lock table menzil.%I in access exclusive mode nowait', v_name);
    perform menzil._feed_dropped('archive', p_last.xid, p_last.row_id);
    execute format('drop table menzil.%I', v_name);
    perform menzil._event('archive.dropped', 'archive', v_name, null, null, jsonb_build_object('about_messages', greatest(v_rows, 0)));
  end if;
  delete from menzil.archive_month a where a.month_start = p_month;
  return (v_rows is not null)::integer;
exception when lock_not_available then
  return 0;
end $$;
