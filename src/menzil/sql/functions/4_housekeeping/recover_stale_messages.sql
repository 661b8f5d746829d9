-- Takes back leases that ran out. Returns how many messages came back.
create or replace function menzil.recover_stale_messages(p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  perform menzil._check_limit(p_limit, 1000000);
  return menzil._recover(clock_timestamp(), '-infinity', p_limit);
end $$;
