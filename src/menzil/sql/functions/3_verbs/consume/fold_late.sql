-- Lines that belong before the end of their lane: late commits, retries, recovered leases, historic times. A line between runs
-- cuts the run it falls into in two. Lines below the head are returned: the caller puts them together into runs.
-- Rule: no run lies below the head, and only a visit moves the head up.
create or replace function menzil._fold_late(p_lines menzil.line[]) returns menzil.line[]
language plpgsql as $$
declare
  v_lane menzil.lane;
  v_below menzil.line[];
  v_all_below menzil.line[];
  v_between menzil.line[];
  v_line menzil.line;
  v_low record;
  v_at record;
begin
  delete from menzil.run r where false;   -- as message_dequeue does it: the lock to write comes before the lock to read
  for v_at in select distinct t.channel_id, t.rank from unnest(p_lines) t loop
    select l.* into v_lane from menzil.lane l where l.channel_id = v_at.channel_id and l.rank = v_at.rank order by l.v desc limit 1;
    select array_agg(t.line) filter (where t.below), array_agg(t.line order by (t.line).due_at, (t.line).first_id) filter (where not t.below)
      into v_below, v_between
      from (select row(t.*)::menzil.line as line,
                   (t.due_at, coalesce(t.ids[t.n], t.first_id + t.n - 1)) < (v_lane.head_due, v_lane.head_id) as below
              from unnest(p_lines) t where t.channel_id = v_at.channel_id and t.rank = v_at.rank) t;
    perform menzil._trim_head(v_lane);
    foreach v_line in array coalesce(v_between, '{}') loop
      perform menzil._cut_in(v_lane, v_line);
    end loop;
    v_all_below := v_all_below || v_below;
    select t.due_at, t.first_id into v_low from unnest(p_lines) t where t.channel_id = v_at.channel_id and t.rank = v_at.rank
     order by t.due_at, t.first_id limit 1;
    update menzil.lane l set gone = 0, v = l.v + 1,
        head_due = case when (v_low.due_at, v_low.first_id) < (l.head_due, l.head_id) then v_low.due_at else l.head_due end,
        head_id = case when (v_low.due_at, v_low.first_id) < (l.head_due, l.head_id) then v_low.first_id else l.head_id end
     where l.channel_id = v_lane.channel_id and l.rank = v_lane.rank and l.v = v_lane.v;
  end loop;
  return v_all_below;
end $$;
