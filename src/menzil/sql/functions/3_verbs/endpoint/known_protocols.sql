-- The protocols an endpoint can have: the built-in ones and those that were registered.
create or replace function menzil.known_protocols() returns text[]
language sql stable parallel safe security definer set search_path = pg_catalog, menzil, pg_temp as $$
  select menzil._built_in_protocols() || array(select p.name from menzil.protocol p where p.name <> all (menzil._built_in_protocols()) order by p.name)
$$;
