-- Takes these messages out of the leases that hold them with these attempts, and returns what it got, one row per lease,
-- ids ascending. A settle counts only for a message that it finds in a locked lease row with the attempt it shows.
-- Leases are locked in the order of their names, so two settles never deadlock. What is left of a lease has gaps, or begins later than
-- the id that names it: its ids are written out.
create or replace function menzil._take_leases(p_ids bigint[], p_attempts bigint[], p_batches bigint[] default null) returns setof menzil.taken
language plpgsql as $$
declare
  v_ask record;
  v_lease menzil.lease;
  v_got bigint[];
  v_rest bigint[];
begin
  for v_ask in
    select u.lo, u.attempt, array_agg(u.id order by u.n) as asked
      from unnest(menzil._leases_of(p_ids, p_attempts, p_batches), p_ids, p_attempts) with ordinality u(lo, id, attempt, n)
     where u.lo is not null group by u.lo, u.attempt order by u.lo, u.attempt
  loop
    select l.* into v_lease from menzil.lease l where l.lo_id = v_ask.lo and l.attempt = v_ask.attempt for update;
    continue when not found;
    if v_lease.ids is null and v_lease.lo_id = v_lease.hi_id then
      v_lease.ids := array[v_lease.lo_id];
    elsif v_lease.ids is null then
      v_lease.ids := array(select generate_series(v_lease.lo_id, v_lease.hi_id));
    end if;
    if v_ask.asked = v_lease.ids then   -- the whole lease, as a worker settles most: nothing has to be looked for in it
      v_got := array(select a.id from unnest(v_ask.asked) a(id) order by 1);
      v_rest := '{}';
    else
      v_got := array(select distinct a.id from unnest(v_ask.asked) a(id) where a.id in (select i.id from unnest(v_lease.ids) i(id)) order by 1);
      continue when v_got = '{}';
      v_rest := array(select i.id from unnest(v_lease.ids) with ordinality i(id, n) where i.id not in (select g.id from unnest(v_got) g(id)) order by i.n);
    end if;
    if v_rest = '{}' then
      delete from menzil.lease l where l.lo_id = v_ask.lo and l.attempt = v_ask.attempt;
    else
      update menzil.lease l set ids = v_rest where l.lo_id = v_ask.lo and l.attempt = v_ask.attempt;
    end if;
    return next row(v_got, v_lease.attempt, v_lease.leased_at, v_lease.worker, v_lease.channel_id, v_lease.epoch, v_lease.flags)::menzil.taken;
  end loop;
end $$;
