-- Keeps leases alive: unlock_at moves forward, never back. The index visits ids in order, as settles do, and a bitmap
-- would not: no deadlock.
create or replace function menzil.message_heartbeat(p_ids bigint[], p_num_attempts bigint[], p_lock_ms bigint) returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_kept bigint[];
begin
  perform menzil._check_tokens(p_ids, p_num_attempts);
  if p_lock_ms is null then
    perform menzil._refuse_null('A lease time');
  elsif p_lock_ms not between 1 and 604800000 then
    perform menzil._refuse_value(format('A lease of %s ms is out of range, it must be 1 ms to 7 days.', p_lock_ms), 'Lease shortly and send heartbeats.');
  end if;
  with kept as (
    update menzil.lease l set unlock_at = greatest(l.unlock_at, v_now + p_lock_ms * interval '1 ms')
     where l.id = any (p_ids)
       and ((l.id, l.attempt) in (select u.id, u.attempt from unnest(p_ids, p_num_attempts) u(id, attempt))) is true
    returning l.id
  )
  select array_agg(k.id) into v_kept from kept k;
  return query select o.id, o.outcome from menzil._outcomes(p_ids, p_num_attempts, v_kept, 'settled') o;
end $$;

create or replace function menzil.message_heartbeat(p_id bigint, p_num_attempts bigint, p_lock_ms bigint) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._raise_outcome(p_id, p_num_attempts,
    (select o.outcome from menzil.message_heartbeat(array[p_id], array[p_num_attempts], p_lock_ms) o));
end $$;
