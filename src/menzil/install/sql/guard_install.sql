do $guard_install$
begin
  if exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = 'menzil' and c.relname = 'migration') then
    raise exception 'menzil is already installed in database %', current_database()
      using errcode = '42P07', hint = 'use the script that `menzil sql upgrade` prints';
  end if;
  if current_setting('server_encoding') = 'SQL_ASCII' then
    raise exception 'database % has the encoding SQL_ASCII, in which PostgreSQL does not know characters', current_database()
      using errcode = '22023', hint = 'make another: create database NAME template template0 encoding ''UTF8''';
  end if;
end
$guard_install$;
