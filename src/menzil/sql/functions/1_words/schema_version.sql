-- The handshake: which numbered migration this schema has reached; 0 after a restore without data.
create or replace function menzil.schema_version() returns integer
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$ select coalesce(max(m.version), 0) from menzil.migration m $$;
