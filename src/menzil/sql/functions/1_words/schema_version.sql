-- The handshake: which numbered migration this schema has reached.
create or replace function menzil.schema_version() returns integer
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$ select max(m.version) from menzil.migration m $$;
