create or replace function menzil.purge_endpoint(p_name text) returns bigint
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil.channel_purge(p_name) $$;
