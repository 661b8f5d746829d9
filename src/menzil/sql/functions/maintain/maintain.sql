-- The janitors, each a function of its own: one transaction per call, bounded, safe to run by anyone at any time.
-- A dequeue does the same on the way; these are for queues that nobody dequeues from.

-- Ends messages past their expiry that no dequeue has met. Returns how many.
create or replace function menzil.mark_expired_messages(p_limit integer default 1000) returns integer
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  perform menzil._check_limit(p_limit, 1000000);
  if not exists (select 1 from menzil.message m where m.expires_at <= v_now) then
    return 0;
  end if;
  perform menzil._tell_withdrawal();
  return menzil._expire_messages(v_now, p_limit);
end $$;

create or replace function menzil._expire_messages(p_now timestamptz, p_limit integer) returns integer
language plpgsql as $$
declare
  v_ids bigint[];
begin
  v_ids := array(select m.id from menzil.message m where m.expires_at <= p_now order by m.expires_at limit p_limit);
  v_ids := menzil._withdraw(v_ids, false);
  perform menzil._end_messages(v_ids, 'expired', p_now);
  return cardinality(v_ids);
end $$;

-- Takes back leases that expired. Returns how many.
create or replace function menzil.recover_stale_messages(p_limit integer default 1000) returns integer
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  perform menzil._check_limit(p_limit, 1000000);
  return menzil._recover(clock_timestamp(), '-infinity', p_limit);
end $$;

-- Forgets idempotency keys whose retention is over. Returns how many.
create or replace function menzil.cleanup_used_keys(p_limit integer default 10000) returns integer
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();   -- a volatile clock would be a filter, not an index condition
  v_count integer;
begin
  perform menzil._check_limit(p_limit, 1000000);
  delete from menzil.used_key k where k.ctid = any (array(
    select u.ctid from menzil.used_key u where u.until_at <= v_now order by u.until_at limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  return v_count;
end $$;

-- Everything once.
create or replace function menzil.maintain() returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  perform menzil._chores(clock_timestamp());
  perform menzil.recover_stale_messages();
  perform menzil.mark_expired_messages();
  perform menzil._promote(clock_timestamp(), '-infinity', 1000);
  perform menzil._fold(clock_timestamp(), true, 2000);
  perform menzil.cleanup_used_keys();
end $$;
