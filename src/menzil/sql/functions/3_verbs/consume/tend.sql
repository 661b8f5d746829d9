-- What a dequeue looks after before its visits, if it found something to look after or a full look is due: leases that ran out,
-- schedules that are due, and the log. A look goes back two seconds; a deep look goes back to the beginning of time, comes every five
-- seconds at the latest and takes else at most 5 % of the time, and raises the floor under which no lane's turn is looked for. Nothing
-- here waits for another transaction. p_turn is the first turn that has come; folded is how many lines were folded. chores: the chores
-- of the second are this dequeue's.
drop function if exists menzil._tend(timestamptz, integer, integer[], boolean);
create or replace function menzil._tend(p_now timestamptz, p_limit integer, p_leases boolean, p_schedules boolean, p_lines boolean, p_turn timestamptz,
                                        inout floor timestamptz, out folded integer, out chores boolean)
language plpgsql as $$
declare
  v_us bigint := menzil._microseconds(p_now);
  v_swept bigint := menzil._register('menzil.swept_at');
  v_since timestamptz := least(p_now, menzil._instant(v_swept)) - interval '2 s';
  v_full boolean := v_us - v_swept not between 0 and 100000;
  v_back boolean := v_us < v_swept - 1000000;   -- the clock was set back
  v_deep boolean := false;
  v_deep_at bigint;
begin
  if v_full then
    perform menzil._refuse_copy();   -- before the register: it keeps its value when this raises, and the next dequeue looks again
    perform setval('menzil.swept_at', v_us);
    v_deep_at := menzil._register('menzil.deep_at');
    if v_back or v_us - v_deep_at not between -60000000 and 0 then
      v_deep := true;
      perform setval('menzil.deep_at', v_us + 250000);
      v_since := '-infinity';
      delete from menzil.look k where k.ctid = any (array(   -- old proofs; the newest twenty stay
        select o.ctid from menzil.look o where o.id < (select max(n.id) from menzil.look n) - 20 order by o.id desc limit 100 for update skip locked));
      perform menzil._tally(false);
      delete from menzil.tally t where t.ctid = any (array(   -- a range, so that rows that a held snapshot keeps are not walked over
        select o.ctid from menzil.tally o, (select max(n.id) as id from menzil.tally n) n where o.id between n.id - 120 and n.id - 21 for update of o skip locked));
    end if;
  end if;
  if v_back then   -- the turns of lanes lie in the future; a gate that holds its lane is asked again
    update menzil.lane l set next_at = p_now, v = l.v + 1 where l.ctid = any (array(
      select o.ctid from menzil.lane o where o.next_at > p_now for update skip locked));
    if exists (select 1 from menzil.lane o where o.next_at > p_now + interval '1 s') then   -- another transaction holds it: again soon
      perform setval('menzil.swept_at', v_us + 2000000);
    end if;
  end if;
  if p_leases or v_deep then
    perform menzil._recover(p_now, v_since, 100);
  end if;
  if p_schedules or v_deep then
    perform menzil._promote(p_now, v_since, 500);
    p_lines := true;
  end if;
  if v_deep then
    -- A lane that another transaction has held for longer does not count: when it is free, the next deep look finds it.
    floor := least(p_now - interval '100 ms', (select min(l.next_at) from menzil.rank_used u
      cross join lateral (select l.next_at from menzil.lane l where l.rank = u.rank and l.next_at is not null order by l.next_at limit 1 for update skip locked) l));
    perform setval('menzil.turn_mark', greatest(0, menzil._microseconds(floor))),
            setval('menzil.deep_at', v_us + least(5000000, greatest(250000, 20 * (menzil._microseconds(clock_timestamp()) - v_us))));
    chores := menzil._register('menzil.deep_at') / 1000000 <> v_deep_at / 1000000;
  elsif v_full then   -- held lanes count: no lane whose turn has come is left below
    perform setval('menzil.turn_mark', greatest(menzil._register('menzil.turn_mark'), menzil._microseconds(least(p_now - interval '100 ms', p_turn))));
  end if;
  if p_lines or v_full then
    folded := menzil._fold(p_now, v_full, least(300, 32 + 4 * p_limit));   -- always more than is leased
  end if;
end $$;
