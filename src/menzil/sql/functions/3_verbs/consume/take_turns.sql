-- Locks lanes whose turn has come, longest waiting first, all of one priority: the highest from p_from on that has one.
-- SKIP LOCKED passes over lanes that another transaction holds. p_floor is a lower bound of the turns: below it there are
-- only old versions. p_only are the channels to serve, or with p_push the endpoints to leave out. turns is null when no lane can be visited. last is the lowest priority in use; null where that was not asked.
-- open: a transaction that withdraws messages may be open; tombs: messages were withdrawn from runs. Both are asked with
-- the lanes locked: a cancel that began earlier has set its registers, and a cancel that begins now waits for this transaction. Both
-- are asked of the same snapshot: a cancel that was open for minutes and commits now is in one of them.
create or replace function menzil._take_turns(
  p_from smallint, p_now timestamptz, p_width integer, p_floor timestamptz, p_only integer[], p_push boolean,
  out rank smallint, out turns menzil.turn[], out open boolean, out tombs boolean, out last smallint
)
language plpgsql as $$
#variable_conflict use_column
declare
  v_from smallint := p_from;
  v_at tid[];
begin
  loop
    if p_only is null and not p_push then   -- the common case: the statement that locks finds the priority
      select max(t.rank), array_agg(row(t.at, t.channel_id, t.name, t.head_due, t.head_id, t.gone, t.gated)::menzil.turn),
             exists (select 1 from menzil.withdrawn), menzil._withdrawals_are_open(pg_current_snapshot()), (select max(u.rank) from menzil.rank_used u)
        into rank, turns, tombs, open, last
        from (select l.ctid as at, l.* from menzil.lane l
               where l.rank = (select u.rank from menzil.rank_used u where u.rank >= v_from
                                  and exists (select 1 from menzil.lane n where n.rank = u.rank and n.next_at >= p_floor and n.next_at <= p_now)
                                order by u.rank limit 1)
                 and l.next_at >= p_floor and l.next_at <= p_now order by l.next_at limit p_width for update skip locked) t;
      if turns is null then
        rank := menzil._next_rank(v_from, p_now, p_floor, p_only, p_push);
      end if;
    elsif not p_push then
      rank := menzil._next_rank(v_from, p_now, p_floor, p_only, p_push);
      exit when rank is null;
      v_at := menzil._lanes_of(p_only, rank, p_now, p_width);
      select array_agg(row(t.at, t.channel_id, t.name, t.head_due, t.head_id, t.gone, t.gated)::menzil.turn),
             exists (select 1 from menzil.withdrawn), menzil._withdrawals_are_open(pg_current_snapshot())
        into turns, tombs, open
        from (select l.ctid as at, l.* from menzil.lane l where l.ctid = any (v_at) and l.next_at <= p_now for update skip locked) t;
    else
      rank := menzil._next_rank(v_from, p_now, p_floor, p_only, p_push);
      exit when rank is null;
      select array_agg(row(t.at, t.channel_id, t.name, t.head_due, t.head_id, t.gone, t.gated)::menzil.turn),
             exists (select 1 from menzil.withdrawn), menzil._withdrawals_are_open(pg_current_snapshot())
        into turns, tombs, open
        from (select l.ctid as at, l.* from menzil.lane l
               where l.push and l.rank = _take_turns.rank and l.next_at >= p_floor and l.next_at <= p_now
                 and (p_only is null or l.channel_id <> all (p_only)) order by l.next_at limit p_width for update skip locked) t;
    end if;
    exit when turns is not null or rank is null;
    v_from := rank + 1;   -- every lane of this priority is held by another transaction
  end loop;
end $$;
