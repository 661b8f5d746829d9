do $guard_install$
begin
  if exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = 'menzil' and c.relname = 'migration') then
    raise exception 'menzil is already installed in database %', current_database()
      using errcode = '42P07', hint = 'use the script that `menzil sql upgrade` prints';
  end if;
end
$guard_install$;
