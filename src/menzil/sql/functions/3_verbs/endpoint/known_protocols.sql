-- The protocols an endpoint can have: the built-in one and those that were registered.
create or replace function menzil.known_protocols() returns text[]
language sql stable parallel safe security definer set search_path = pg_catalog, menzil, pg_temp as $$
  select array['http'] || array(select p.name from menzil.protocol p order by p.name)
$$;
