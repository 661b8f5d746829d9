do $guard_upgrade$
declare
  v_version  integer := (select coalesce(max(version), 0) from menzil.migration);
  v_changed  integer;
begin
  if v_version = 0 and to_regclass('menzil.setting_value') is not null then
    raise exception 'database % has the tables of menzil and not the rows that say which version they are', current_database()
      using hint = 'run `menzil migrate`: it adopts the tables of a dump without data';
  end if;
  if v_version > {version} then
    raise exception 'database % has schema %, and this script knows {version} at most', current_database(), v_version
      using hint = 'print the script with a newer menzil';
  end if;
  if v_version < {start} then
    raise exception 'database % has schema %, and this script starts from {start}', current_database(), v_version
      using hint = 'print the script again with `menzil sql upgrade` and without --from';
  end if;
  select m.version into v_changed
    from menzil.migration m join (values {known}) known (version, checksum) using (version)
   where m.checksum <> known.checksum
   order by 1 limit 1;
  if found then
    raise exception 'migration % in database % is not the one this script knows', v_changed, current_database()
      using hint = 'print the script with the menzil release that migrated this database, or a later one';
  end if;
end
$guard_upgrade$;
