-- What every dequeue looks after before its visits: expired leases, schedules that are due, and the log. A look goes back
-- two seconds; a deep look goes back to the beginning of time, comes every five seconds at the latest and takes else at most
-- 5 % of the time, and raises the floor under which no lane's turn is looked for. Nothing here waits for another transaction.
-- lone: no two lanes have their turn, and nothing was folded. fresh, if p_fresh asks for it: no lane has its turn, nothing is due,
-- and the oldest and the newest line of the log belong to one lane of these channels, so that the fresh way is worth a try. The
-- look is then put off, for a second and fifty transactions at most, so that a message that wakes an idle consumer does not wait
-- for it.
create or replace function menzil._tend(p_now timestamptz, p_limit integer, p_only integer[], p_fresh boolean, out floor timestamptz, out lone boolean, out fresh boolean)
language plpgsql as $$
declare
  v_us bigint := menzil._microseconds(p_now);
  -- Two seconds, and back to the last full look where no dequeue came for longer.
  v_since timestamptz := least(p_now, menzil._instant(menzil._register('menzil.swept_at'))) - interval '2 s';
  v_floor timestamptz := menzil._instant(menzil._register('menzil.turn_mark'));
  v_leases boolean;
  v_schedules boolean;
  v_lines boolean;
  v_first bigint;   -- lanes of the oldest and the newest fresh line, as channel * 16 + rank
  v_last bigint;
  v_xids bigint;    -- transactions since the newest proof
  v_due integer;    -- lanes whose turn has come, up to two of each priority
  v_turn timestamptz;   -- the first of these turns: this dequeue need not look below it
  v_full boolean := v_us - menzil._register('menzil.swept_at') not between 0 and 100000;
  v_deep boolean := false;
  v_back boolean := v_us < menzil._register('menzil.swept_at') - 1000000;   -- the clock was set back
begin
  select exists (select 1 from menzil.lease b where b.watch_at >= v_since and b.watch_at <= p_now),
         exists (select 1 from menzil.scheduled d where d.due_at >= v_since and d.due_at <= p_now),
         -- Lines that a look would read: fresh ones, or late ones while they are few.
         (select n.channel_id::bigint * 16 + coalesce(n.rank, 15) from menzil.line n where n.xid >= coalesce(k.folded_to, '0') order by n.xid limit 1),
         (select n.channel_id::bigint * 16 + coalesce(n.rank, 15) from menzil.line n where n.xid >= coalesce(k.folded_to, '0') order by n.xid desc limit 1),
         cardinality(k.late) <= 16 and exists (select 1 from menzil.line n where n.xid = any (k.late)),
         pg_snapshot_xmax(pg_current_snapshot())::text::bigint - k.folded_to::text::bigint, t.due, t.turn
    into v_leases, v_schedules, v_first, v_last, v_lines, v_xids, v_due, v_turn
    from (select count(*) as due, min(l.next_at) as turn from menzil.rank_used u
            cross join lateral (select l.next_at from menzil.lane l where l.rank = u.rank and l.next_at >= v_floor and l.next_at <= p_now
                                 order by l.next_at limit 2) l) t
    left join lateral (select k.folded_to, k.late from menzil.look k order by k.id desc limit 1) k on true;
  floor := greatest(v_floor, v_turn);
  fresh := p_fresh and v_first = v_last and v_first & 15 <> 15 and not v_leases and not v_schedules and v_due = 0 and v_lines is not true
    and (not v_full or v_xids <= 50 and v_us - menzil._register('menzil.swept_at') between 0 and 1000000) and (p_only is null or (v_first >> 4)::integer = any (p_only));
  if fresh then
    return;
  end if;
  fresh := false;
  lone := v_due < 2;
  v_lines := v_lines or v_first is not null;
  if v_full then
    perform menzil._refuse_copy();   -- before the register: it keeps its value when this raises, and the next dequeue looks again
    perform setval('menzil.swept_at', v_us);
    if v_back or v_us - menzil._register('menzil.deep_at') not between -60000000 and 0 then
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
  if v_leases or v_deep then
    perform menzil._recover(p_now, v_since, 100);
  end if;
  if v_schedules or v_deep then
    perform menzil._promote(p_now, v_since, 500);
    v_lines := true;
  end if;
  if v_deep then
    -- A lane that another transaction has held for longer does not count: when it is free, the next deep look finds it.
    v_floor := least(p_now - interval '100 ms', (select min(l.next_at) from menzil.rank_used u
      cross join lateral (select l.next_at from menzil.lane l where l.rank = u.rank and l.next_at is not null order by l.next_at limit 1 for update skip locked) l));
    perform setval('menzil.turn_mark', greatest(0, menzil._microseconds(v_floor))),
            setval('menzil.deep_at', v_us + least(5000000, greatest(250000, 20 * (menzil._microseconds(clock_timestamp()) - v_us))));
    floor := v_floor;
  elsif v_full then   -- held lanes count: no lane whose turn has come is left below
    perform setval('menzil.turn_mark', greatest(0, menzil._microseconds(greatest(v_floor, least(p_now - interval '100 ms', v_turn)))));
  end if;
  if v_lines or v_full then
    lone := menzil._fold(p_now, v_full, least(300, 32 + 4 * p_limit)) = 0 and lone;   -- always more than is leased
  end if;
end $$;
