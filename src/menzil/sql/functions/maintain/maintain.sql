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

-- All together; if one of them cannot be ended, one by one, so that it keeps nobody else.
create or replace function menzil._expire_messages(p_now timestamptz, p_limit integer) returns integer
language plpgsql as $$
declare
  v_ids bigint[] := array(select m.id from menzil.message m where m.expires_at <= p_now order by m.expires_at limit p_limit);
  v_id bigint;
  v_count integer := 0;
begin
  begin
    return menzil._expire_these(v_ids, p_now);
  exception when others then
    null;
  end;
  foreach v_id in array v_ids loop
    begin
      v_count := v_count + menzil._expire_these(array[v_id], p_now);
    exception when others then
      if not menzil._is_passing(sqlstate) then
        perform menzil._note_stuck(v_id, sqlerrm, p_now);
      end if;
    end;
  end loop;
  return v_count;
end $$;

create or replace function menzil._expire_these(p_ids bigint[], p_now timestamptz) returns integer
language plpgsql as $$
declare
  v_ids bigint[] := menzil._withdraw(p_ids, false);
begin
  perform menzil._end_messages(v_ids, 'expired', p_now);
  return cardinality(v_ids);
end $$;

-- A message that the queue cannot move, said once in ten minutes.
create or replace function menzil._note_stuck(p_id bigint, p_error text, p_now timestamptz) returns void
language plpgsql as $$
begin
  if not exists (select 1 from menzil.event e where e.created_at > p_now - interval '10 min' and e.event_type = 'message.stuck'
                    and e.entity_id = p_id::text) then
    perform menzil._event('message.stuck', 'message', p_id::text, null, null, jsonb_build_object('error', left(p_error, 1000)));
  end if;
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
