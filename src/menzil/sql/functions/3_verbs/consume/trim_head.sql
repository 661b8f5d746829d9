-- Cuts off what is leased already of the run at the head of a locked lane, so that the run begins with what is left. The
-- head stays where it was, as a lower bound: a run of the same microsecond may begin between the head and what is left.
-- The caller writes gone = 0 into the lane.
create or replace function menzil._trim_head(p_lane menzil.lane) returns void
language plpgsql as $$
declare
  v_run menzil.run;
  v_was record;
begin
  if p_lane.gone = 0 then
    return;
  end if;
  delete from menzil.run r
   where r.channel_id = p_lane.channel_id and r.rank = p_lane.rank and r.due_at = p_lane.head_due and r.first_id = p_lane.head_id
  returning r.* into v_run;
  if not found then
    return;
  end if;
  v_was := menzil._positions(v_run);
  insert into menzil.run (channel_id, rank, due_at, first_id, last_due, last_id, n, flags, ids)
    values (v_run.channel_id, v_run.rank, v_was.dues[p_lane.gone + 1], v_was.ids[p_lane.gone + 1], v_run.last_due, v_run.last_id,
            v_run.n - p_lane.gone, v_run.flags, case when v_run.ids is not null then v_run.ids[p_lane.gone + 1 :] end);
end $$;
