-- Takes up to p_room messages from the front of one locked lane and moves its head.
create or replace function menzil._visit_lane(p_turn menzil.turn, p_rank smallint, p_room integer, p_now timestamptz, out ids bigint[], out flags smallint)
language plpgsql as $$
declare
  v_run record;
  v_skip integer;
  v_take integer;
  v_left integer := p_room;
  v_used tid[] := '{}';
  v_due timestamptz := p_turn.head_due;
  v_id bigint := p_turn.head_id;
  v_gone integer := p_turn.gone;
  v_more boolean := false;
begin
  -- Usually the first run has more than enough: no row of it is written, only the lane moves on.
  select r.n, r.flags, r.ids into v_run from menzil.run r
   where r.channel_id = p_turn.channel_id and r.rank = p_rank and r.due_at = p_turn.head_due and r.first_id = p_turn.head_id;
  if v_run.n - p_turn.gone > p_room then
    ids := case when v_run.ids is null then array(select generate_series(p_turn.head_id + p_turn.gone, p_turn.head_id + p_turn.gone + p_room - 1))
                else v_run.ids[p_turn.gone + 1 : p_turn.gone + p_room] end;
    flags := v_run.flags;
    update menzil.lane l set gone = p_turn.gone + p_room, next_at = p_now, v = l.v + 1 where l.ctid = p_turn.at;
    return;
  end if;
  flags := 0;
  for v_run in
    select r.ctid as at, r.due_at, r.first_id, r.n, r.flags, r.ids from menzil.run r
     where r.channel_id = p_turn.channel_id and r.rank = p_rank and (r.due_at, r.first_id) >= (p_turn.head_due, p_turn.head_id)
     order by r.due_at, r.first_id limit p_room + 1
  loop
    v_skip := case when v_run.due_at = p_turn.head_due and v_run.first_id = p_turn.head_id then p_turn.gone else 0 end;
    v_due := v_run.due_at;
    v_id := v_run.first_id;
    v_gone := v_skip;
    v_take := least(v_left, v_run.n - v_skip);
    if v_take = 0 then
      v_more := true;
      exit;
    end if;
    ids := ids || case when v_run.ids is null then array(select generate_series(v_run.first_id + v_skip, v_run.first_id + v_skip + v_take - 1))
                       else v_run.ids[v_skip + 1 : v_skip + v_take] end;
    flags := flags | v_run.flags;
    v_left := v_left - v_take;
    if v_skip + v_take = v_run.n then
      v_used := v_used || v_run.at;
      v_gone := 0;
    else
      v_gone := v_skip + v_take;
      v_more := true;
      exit;
    end if;
  end loop;
  if v_used <> '{}' then
    delete from menzil.run r where r.ctid = any (v_used);
  end if;
  update menzil.lane l set head_due = v_due, head_id = v_id, gone = v_gone, next_at = case when v_more then p_now end,
      tail_due = case when v_more then l.tail_due end, tail_id = case when v_more then l.tail_id end, v = l.v + 1
   where l.ctid = p_turn.at;
end $$;
