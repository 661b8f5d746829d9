-- A dump without data has the tables and none of the rows that migrations put there. Jobs and the functions of the month
-- come with the code. Each table is asked for first: the schema may be that of an earlier release.
do $fill$
declare
  v_parent regclass := coalesce(to_regclass('menzil.message'), to_regclass('menzil.archive'));
begin
  if to_regclass('menzil.setting_value') is not null then
    insert into menzil.setting_value default values on conflict do nothing;
  end if;
  if to_regclass('menzil.archive_month') is not null then
    insert into menzil.archive_month (month_start)
      select (replace(substring(c.relname from 9), '_', '-') || '-01 00:00:00+00')::timestamptz
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent = v_parent and c.relname ~ '^archive_[0-9]{4}_[0-9]{2}$'
      on conflict do nothing;
  end if;
  if to_regclass('menzil.ends_copied') is not null then
    insert into menzil.ends_copied (xid, id) select '0', 0 where not exists (select from menzil.ends_copied);
  end if;
  if to_regclass('menzil.home') is not null then   -- the code that follows writes down where this database lives
    insert into menzil.home (database_oid, database_name, server_major) values (0, '', 0) on conflict do nothing;
  end if;
  if to_regproc('menzil._tally') is not null then
    perform menzil._tally(true);
  end if;
end
$fill$;
