-- These lines belong to lanes that are locked: they become runs. Lines that stand behind the end of their lane are put
-- together, up to 256 messages a run, and so are lines below its head; a line of more than 16 messages becomes a run as it is.
create or replace function menzil._fold_lines(p_now timestamptz, p_lines menzil.line[]) returns void
language plpgsql as $$
declare
  v_line menzil.line;
  v_lane menzil.lane;
  v_late menzil.line[];
  v_out menzil.line[];
  v_last bigint;
begin
  if cardinality(p_lines) = 1 and p_lines[1].flags & 64 = 0 then   -- the common case in few steps
    v_line := p_lines[1];
    select l.* into v_lane from menzil.lane l where l.channel_id = v_line.channel_id and l.rank = v_line.rank order by l.v desc limit 1;
    if v_lane.tail_due is null or (v_line.due_at, v_line.first_id) > (v_lane.tail_due, v_lane.tail_id) then
      v_last := coalesce(v_line.ids[v_line.n], v_line.first_id + v_line.n - 1);
      insert into menzil.run (channel_id, rank, due_at, first_id, last_due, last_id, n, flags, ids)
        values (v_line.channel_id, v_line.rank, v_line.due_at, v_line.first_id, v_line.due_at, v_last, v_line.n, v_line.flags, v_line.ids);
      update menzil.lane l set
          head_due = case when l.tail_due is null then v_line.due_at else l.head_due end,
          head_id = case when l.tail_due is null then v_line.first_id else l.head_id end,
          gone = case when l.tail_due is null then 0 else l.gone end,
          next_at = case when l.tail_due is null then p_now else l.next_at end,
          tail_due = v_line.due_at, tail_id = v_last, v = l.v + 1
       where l.channel_id = v_line.channel_id and l.rank = v_line.rank and l.v = v_lane.v;
      return;
    end if;
  end if;

  select array_agg(row(t.*)::menzil.line order by t.channel_id, t.rank, t.due_at, t.first_id)
           filter (where t.flags & 64 = 0 and (t.due_at, t.first_id) <= (l.tail_due, l.tail_id)),
         array_agg(row(t.*)::menzil.line) filter (where t.flags & 64 <> 0)
    into v_late, v_out
    from unnest(p_lines) t
    cross join lateral (select l.tail_due, l.tail_id from menzil.lane l where l.channel_id = t.channel_id and l.rank = t.rank order by l.v desc limit 1) l;
  if v_late is not null then
    v_late := menzil._fold_late(v_late);
  end if;

  with l as materialized (
    select t.channel_id, t.rank, t.due_at, t.first_id, t.n, t.flags, t.ids, false as below from unnest(p_lines) t
      cross join lateral (select l.tail_due, l.tail_id from menzil.lane l where l.channel_id = t.channel_id and l.rank = t.rank order by l.v desc limit 1) l
     where t.flags & 64 = 0 and ((t.due_at, t.first_id) <= (l.tail_due, l.tail_id)) is not true
    union all
    select t.channel_id, t.rank, t.due_at, t.first_id, t.n, t.flags, t.ids, true from unnest(v_late) t
  ), w as materialized (
    select l.*, sum((l.n > 16)::integer) over o as bigs, (sum(case when l.n > 16 then 0 else l.n end) over o - 1) / 256 as part
      from l window o as (partition by l.channel_id, l.rank, l.below order by l.due_at, l.first_id rows unbounded preceding)
  ), r as materialized (
    select w.channel_id, w.rank, w.due_at, w.first_id, w.due_at as last_due, coalesce(w.ids[w.n], w.first_id + w.n - 1) as last_id, w.n, w.flags, w.ids, w.below
      from w where w.n > 16
    union all
    select q.channel_id, q.rank, q.dues[1], q.ids[1], q.dues[q.n], q.ids[q.n], q.n, q.flags, case when q.n > 1 then q.ids end, q.below
      from (select w.channel_id, w.rank, w.below, array_agg(w.due_at order by w.due_at, u.id) as dues, array_agg(u.id order by w.due_at, u.id) as ids,
                   count(*)::integer as n, bit_or(w.flags) as flags
              from w cross join lateral unnest(case when w.ids is not null then w.ids when w.n = 1 then array[w.first_id]
                                                    else array(select generate_series(w.first_id, w.first_id + w.n - 1)) end) u(id)
             where w.n <= 16 group by w.channel_id, w.rank, w.below, w.bigs, w.part) q
  ), put as (
    insert into menzil.run (channel_id, rank, due_at, first_id, last_due, last_id, n, flags, ids)
      select r.channel_id, r.rank, r.due_at, r.first_id, r.last_due, r.last_id, r.n, r.flags, r.ids from r
  ), h as materialized (
    select r.channel_id, r.rank, (array_agg(r.due_at order by r.due_at, r.first_id))[1] as due_at, (array_agg(r.first_id order by r.due_at, r.first_id))[1] as first_id,
           (array_agg(r.last_due order by r.last_due desc, r.last_id desc))[1] as last_due, (array_agg(r.last_id order by r.last_due desc, r.last_id desc))[1] as last_id
      from r where not r.below group by r.channel_id, r.rank
  )
  update menzil.lane l set
      head_due = case when l.tail_due is null then h.due_at else l.head_due end,
      head_id = case when l.tail_due is null then h.first_id else l.head_id end,
      gone = case when l.tail_due is null then 0 else l.gone end,
      next_at = case when l.tail_due is null then p_now else l.next_at end,
      tail_due = h.last_due, tail_id = h.last_id, v = l.v + 1
    from (select h.*, n.at from h
            cross join lateral (select n.ctid as at from menzil.lane n where n.channel_id = h.channel_id and n.rank = h.rank order by n.v desc limit 1) n) h
   where l.ctid = h.at;

  if v_out is not null then
    perform menzil._take_out(o.channel_id, o.rank, o.ids, true)
       from (select t.channel_id, t.rank, array_agg(distinct u.id) as ids from unnest(v_out) t cross join lateral unnest(t.ids) u(id) group by 1, 2) o;
  end if;
end $$;
