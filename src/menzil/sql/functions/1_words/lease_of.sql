-- The attempt of the lease that holds a message; null: it is not in flight.
create or replace function menzil._lease_of(p_id bigint) returns bigint
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  if p_id < 1 then   -- no message has such an id, and the subtraction below must not overflow
    return null;
  end if;
  return coalesce(
    (select l.attempt from menzil.lease l where l.lo_id <= p_id and l.lo_id > p_id - 4096 and l.hi_id >= p_id and (l.ids is null or p_id = any (l.ids)) order by l.lo_id desc limit 1),
    (select l.attempt from menzil.lease l where l.lo_id <= p_id - 4096 and l.hi_id >= p_id and (l.ids is null or p_id = any (l.ids)) order by l.lo_id desc limit 1));
end $$;
