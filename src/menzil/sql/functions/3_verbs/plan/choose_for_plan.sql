-- The next dead letters or messages of a plan, and its cursors moved behind them. Its channels take turns; a channel that takes no
-- messages now is passed over and said in waits, and one that will never take any is given up.
create or replace function menzil._choose_for_plan(p_plan menzil.plan, p_limit integer, p_now timestamptz,
  out ids bigint[], out created_ats timestamptz[], out skipped bigint, out waits text, out more boolean)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_target menzil.plan_channel;
  v_next menzil.plan_channel;
  v_state record;
  v_room record;
  v_part record;
  v_wait text;
  v_held text[] := '{}';
begin
  ids := '{}';
  created_ats := '{}';
  skipped := 0;
  more := false;
  for v_target in
    select t.* from menzil.plan_channel t where t.plan_id = p_plan.id and not t.finished order by t.stepped_at nulls first, t.channel_id
  loop
    if cardinality(ids) >= p_limit then
      more := true;
      exit;
    end if;
    v_next := v_target;
    select w.* into v_state from menzil._plan_waits(v_target.channel_id, v_target.probed_at, p_now) w;
    v_wait := v_state.sentence;
    if v_state.gone then
      v_next.finished := true;
      v_next.skipped := greatest(v_target.skipped, v_target.counted - v_target.done);
      v_next.left_out := format('%s %s of its messages were left out.', v_wait, v_next.skipped - v_target.skipped);
    elsif v_wait is null then
      select r.room, r.sentence into v_room from menzil._plan_room(v_target.channel_id, least(p_limit - cardinality(ids), v_state.most)) r;
      v_wait := v_room.sentence;
      if v_room.room > 0 then
        if p_plan.kind = 'redrive' then
          select l.target, l.ids into v_part from menzil._plan_letters(p_plan, v_target, v_room.room) l;
        else
          select e.target, e.ids, e.created_ats into v_part from menzil._plan_ended(p_plan, v_target, v_room.room) e;
          created_ats := created_ats || v_part.created_ats;
        end if;
        ids := ids || v_part.ids;
        v_next := v_part.target;
        v_next.done := v_next.done + cardinality(v_part.ids);
        v_next.probed_at := case when v_part.ids <> '{}' then v_state.probe_at else v_target.probed_at end;
        more := more or not v_next.finished and v_state.most is null;
      end if;
    end if;
    if v_wait is not null and not v_state.gone then
      v_held := v_held || v_wait;
      continue;
    end if;
    skipped := skipped + v_next.skipped - v_target.skipped;
    update menzil.plan_channel t set cursor_at = v_next.cursor_at, cursor_id = v_next.cursor_id, done = v_next.done, skipped = v_next.skipped,
        probed_at = v_next.probed_at, finished = v_next.finished, left_out = v_next.left_out, stepped_at = p_now
     where t.plan_id = p_plan.id and t.channel_id = v_target.channel_id;
  end loop;
  if v_held <> '{}' then
    waits := concat_ws(' ', array_to_string(v_held[: 3], ' '), case when cardinality(v_held) > 3 then format('%s more channels wait.', cardinality(v_held) - 3) end);
  end if;
end $$;
