-- Writes down where this database lives; with p_oid 0, that it lives nowhere.
create or replace function menzil._record_home(p_oid oid default null) returns void
language plpgsql as $$
begin
  insert into menzil.home as h (system_identifier, database_oid, database_name, server_major)
    select menzil._system_identifier(), coalesce(p_oid, d.oid), d.datname, current_setting('server_version_num')::integer / 10000
      from pg_database d where d.datname = current_database()
    on conflict ((true)) do update set system_identifier = excluded.system_identifier, database_oid = excluded.database_oid,
      database_name = excluded.database_name, server_major = excluded.server_major, recorded_at = excluded.recorded_at;
  -- The row was written by this transaction or savepoint, and so is its next version: both have the same xmin.
  update menzil.home h set writer = h.xmin;
end $$;
