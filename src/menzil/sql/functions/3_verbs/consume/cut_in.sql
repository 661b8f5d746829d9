-- Puts a line between the runs of a locked lane whose head run is whole. The run that the line falls into is cut in two.
create or replace function menzil._cut_in(p_lane menzil.lane, p_line menzil.line) returns void
language plpgsql as $$
declare
  v_run menzil.run;
  v_was record;
  v_cut integer;
begin
  select r.* into v_run from menzil.run r
   where r.channel_id = p_line.channel_id and r.rank = p_line.rank and (r.due_at, r.first_id) >= (p_lane.head_due, p_lane.head_id)
     and (r.due_at, r.first_id) < (p_line.due_at, p_line.first_id)
   order by r.due_at desc, r.first_id desc limit 1;
  if found and v_run.n > 1 and (v_run.last_due, v_run.last_id) > (p_line.due_at, p_line.first_id) then
    v_was := menzil._positions(v_run);
    v_cut := (select greatest(1, least(v_run.n - 1, count(*))) from unnest(v_was.ids, v_was.dues) u(id, due) where (u.due, u.id) < (p_line.due_at, p_line.first_id));
    delete from menzil.run r where r.channel_id = v_run.channel_id and r.rank = v_run.rank and r.due_at = v_run.due_at and r.first_id = v_run.first_id;
    insert into menzil.run (channel_id, rank, due_at, first_id, last_due, last_id, n, flags, ids) values
      -- The first part keeps the key: no run may get below the head.
      (v_run.channel_id, v_run.rank, v_run.due_at, v_run.first_id, v_was.dues[v_cut], v_was.ids[v_cut], v_cut, v_run.flags, v_was.ids[: v_cut]),
      (v_run.channel_id, v_run.rank, v_was.dues[v_cut + 1], v_was.ids[v_cut + 1], v_run.last_due, v_run.last_id, v_run.n - v_cut, v_run.flags, v_was.ids[v_cut + 1 :]);
  end if;
  insert into menzil.run (channel_id, rank, due_at, first_id, last_due, last_id, n, flags, ids)
    values (p_line.channel_id, p_line.rank, p_line.due_at, p_line.first_id, p_line.due_at,
            coalesce(p_line.ids[p_line.n], p_line.first_id + p_line.n - 1), p_line.n, p_line.flags, p_line.ids);
end $$;
