-- Ends messages past their expiry that no dequeue has met. Returns how many.
create or replace function menzil.mark_expired_messages(p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  perform menzil._check_limit(p_limit, 1000000);
  return menzil._expire(clock_timestamp(), p_limit);
end $$;
