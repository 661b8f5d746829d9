-- The first id of the lease that holds each of these tokens; null where there is none. A batch is usually of one lease, or of
-- a few: the lease of one token is looked for, and every other token that it holds is found with it. After eight leases the
-- rest is looked for one by one. The hint is checked: it may be wrong.
create or replace function menzil._leases_of(p_ids bigint[], p_attempts bigint[], p_batches bigint[]) returns bigint[]
language plpgsql stable
set enable_seqscan = off set jit = off as $$
declare
  v_los bigint[] := array_fill(null::bigint, array[cardinality(p_ids)]);
  v_ids bigint[] := array(select u.id from unnest(p_ids) with ordinality u(id, n) order by u.n);   -- counts from 1: an array of the caller may not
  v_attempts bigint[] := array(select u.attempt from unnest(p_attempts) with ordinality u(attempt, n) order by u.n);
  v_hints bigint[] := array(select u.hint from unnest(p_batches) with ordinality u(hint, n) order by u.n);
  v_at integer;
  v_lease record;
begin
  if cardinality(p_ids) > 1 then
    for v_round in 1 .. 8 loop
      v_at := array_position(v_los, null);
      exit when v_at is null;
      select l.lo_id, l.hi_id, l.ids into v_lease from menzil.lease l
       where l.lo_id = coalesce(menzil._lease_start(v_ids[v_at], v_attempts[v_at], v_hints[v_at]), -1) and l.attempt = v_attempts[v_at];
      exit when v_lease.lo_id is null;
      v_los := array(select case when u.lo is null and u.attempt = v_attempts[v_at] and u.id between v_lease.lo_id and v_lease.hi_id
                                  and (v_lease.ids is null or u.id in (select i.id from unnest(v_lease.ids) i(id)))
                                 then v_lease.lo_id else u.lo end
                       from unnest(v_los, v_ids, v_attempts) with ordinality u(lo, id, attempt, n) order by u.n);
    end loop;
  end if;
  if array_position(v_los, null) is not null then
    v_los := array(select coalesce(u.lo, menzil._lease_start(u.id, u.attempt, u.hint))
                     from unnest(v_los, v_ids, v_attempts, v_hints) with ordinality u(lo, id, attempt, hint, n) order by u.n);
  end if;
  return v_los;
end $$;
