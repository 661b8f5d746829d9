-- Forgets workers that stopped a day ago or were not heard of for a week. Returns how many.
create or replace function menzil.cleanup_workers(p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
  v_count integer;
begin
  perform menzil._check_limit(p_limit, 1000000);
  delete from menzil.worker w where w.ctid = any (array(
    select o.ctid from menzil.worker o where o.stopped_at < v_now - interval '1 day' or o.heartbeat_at < v_now - interval '7 days'
     limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  return v_count;
end $$;
