-- The first id of the lease that holds a token; null where there is none. Leases that begin up to 4096 ids below it are looked at first: only
-- a batch over many channels begins further away. The hint is checked: it may be wrong.
create or replace function menzil._lease_start(p_id bigint, p_attempt bigint, p_hint bigint) returns bigint
language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
  if p_id < 1 then   -- no message has such an id, and the subtraction below must not overflow
    return null;
  end if;
  return coalesce(
    (select l.lo_id from menzil.lease l where l.lo_id = p_hint and l.attempt = p_attempt and p_id between l.lo_id and l.hi_id and (l.ids is null or p_id = any (l.ids))),
    (select l.lo_id from menzil.lease l where l.lo_id <= p_id and l.lo_id > p_id - 4096 and l.hi_id >= p_id and l.attempt = p_attempt and (l.ids is null or p_id = any (l.ids))
      order by l.lo_id desc limit 1),
    (select l.lo_id from menzil.lease l where l.lo_id <= p_id and l.hi_id >= p_id and l.attempt = p_attempt and (l.ids is null or p_id = any (l.ids))
      order by l.lo_id desc limit 1));
end $$;
