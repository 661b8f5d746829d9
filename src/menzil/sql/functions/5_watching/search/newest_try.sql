-- The highest id among messages that were tried or ended lately; null: none was. Tries are looked for from here down: above it
-- messages wait, often many.
create or replace function menzil.newest_try() returns bigint
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
  select greatest((select max(t.message_id) from menzil.attempt t),
                  (select max(d.hi_id) from (select d.hi_id from menzil.done d order by d.ended_xid desc limit 100) d))
$$;
