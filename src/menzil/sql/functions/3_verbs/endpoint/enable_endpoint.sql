-- A disabled endpoint refuses new messages and holds those that wait. Both may be called twice; only a change is an event.
create or replace function menzil.enable_endpoint(p_name text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil._set_endpoint_enabled(p_name, true) $$;

create or replace function menzil.disable_endpoint(p_name text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil._set_endpoint_enabled(p_name, false) $$;
