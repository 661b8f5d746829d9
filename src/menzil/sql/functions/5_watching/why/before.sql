-- How many messages in the runs of a lane are leased before position (p_place_at, p_id). At most p_most runs are read. Cancelled
-- messages that still stand there are counted.
create or replace function menzil._before(p_channel_id integer, p_rank smallint, p_place_at timestamptz, p_id bigint, p_most integer) returns bigint
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_lane menzil.lane;
  v_run menzil.run;
begin
  select l.* into v_lane from menzil.lane l where l.channel_id = p_channel_id and l.rank = p_rank order by l.v desc limit 1;
  if v_lane.tail_due is null then
    return 0;
  end if;
  select r.* into v_run from menzil.run r
   where r.channel_id = p_channel_id and r.rank = p_rank and (r.due_at, r.first_id) >= (v_lane.head_due, v_lane.head_id) and (r.due_at, r.first_id) <= (p_place_at, p_id)
   order by r.due_at desc, r.first_id desc limit 1;
  if not found then
    return 0;
  end if;
  return greatest(0,
    - v_lane.gone   -- of the first run, and leased already
    + coalesce((select sum(r.n) from (
        select r.n from menzil.run r
         where r.channel_id = p_channel_id and r.rank = p_rank and (r.due_at, r.first_id) >= (v_lane.head_due, v_lane.head_id)
           and (r.due_at, r.first_id) < (v_run.due_at, v_run.first_id) order by r.due_at, r.first_id limit p_most) r), 0)
    + case when (v_run.last_due, v_run.last_id) < (p_place_at, p_id) then v_run.n
           when v_run.due_at = v_run.last_due and v_run.ids is null then p_id - v_run.first_id
           when v_run.due_at = v_run.last_due then (select count(*) from unnest(v_run.ids) u(id) where u.id < p_id)
           else (select count(*) from menzil._positions(v_run) p cross join lateral unnest(p.ids, p.dues) u(id, due) where (u.due, u.id) < (p_place_at, p_id)) end);
end $$;
