-- Keeps leases alive: unlock_at moves forward, never back. The messages of one lease are kept together, also those that were
-- not named. watch_at stays, so the update is HOT; recovery looks again at a lease that was extended.
drop function if exists menzil.message_heartbeat(bigint[], bigint[], bigint);
create or replace function menzil.message_heartbeat(p_ids bigint[], p_num_attempts bigint[], p_lock_ms bigint, p_batches bigint[] default null)
returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_ask record;
  v_lease record;
  v_kept bigint[] := '{}';
begin
  perform menzil._check_tokens(p_ids, p_num_attempts);
  if p_lock_ms is null then
    perform menzil._refuse_null('A lease time');
  elsif p_lock_ms not between 1 and 604800000 then
    perform menzil._refuse_value(format('A lease of %s ms is out of range, it must be 1 ms to 7 days.', p_lock_ms), 'Lease shortly and send heartbeats.');
  end if;
  for v_ask in   -- in the order of settles: no deadlock
    select u.lo, u.attempt, array_agg(u.id) as asked
      from unnest(menzil._leases_of(p_ids, p_num_attempts, p_batches), p_ids, p_num_attempts) u(lo, id, attempt)
     where u.lo is not null group by u.lo, u.attempt order by u.lo, u.attempt
  loop
    update menzil.lease l set unlock_at = greatest(l.unlock_at, v_now + p_lock_ms * interval '1 ms')
     where l.lo_id = v_ask.lo and l.attempt = v_ask.attempt returning l.lo_id, l.hi_id, l.ids into v_lease;
    if found then
      v_kept := v_kept || array(select distinct a.id from unnest(v_ask.asked) a(id)
                                where a.id between v_lease.lo_id and v_lease.hi_id and (v_lease.ids is null or a.id in (select i.id from unnest(v_lease.ids) i(id))));
    end if;
  end loop;
  return query select o.id, o.outcome from menzil._outcomes(p_ids, p_num_attempts, v_kept, 'settled') o;
end $$;

create or replace function menzil.message_heartbeat(p_id bigint, p_num_attempts bigint, p_lock_ms bigint) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._raise_outcome(p_id, p_num_attempts,
    (select o.outcome from menzil.message_heartbeat(array[p_id], array[p_num_attempts], p_lock_ms) o));
end $$;
