-- The handshake of clients. A client was written for the schema of one migration, its number. It works with this database if that
-- number is at least compatible_from and at most installed. An older client goes on working after a migration, so workers may
-- be replaced one by one. Raise compatible_from in the release whose functions or tables an older client cannot use.
-- installed is that of the code, not of the tables: between the last migration and the functions nothing fits yet.
create or replace function menzil.schema_window(out compatible_from integer, out installed integer)
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$
  select 7, max(c.schema_version) from menzil.installed_code c
$$;

-- For clients that know no window and demand the number they were written for: the first that still fits.
create or replace function menzil.schema_version() returns integer
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$
  select w.compatible_from from menzil.schema_window() w
$$;
