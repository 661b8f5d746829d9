-- Ends a plan. With p_take_back the messages it made that wait and were not leased are cancelled, those that are due first first, and
-- the dead letters of a redrive are failed again. At most 5,000 in one call, and none while another session stays at the plan: a job
-- goes on with the rest, and so does another call. Returns how many this call took back.
create or replace function menzil.plan_stop(p_id bigint, p_take_back boolean default false) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_plan menzil.plan := menzil._plan_for(p_id);
  v_now timestamptz := clock_timestamp();
  v_taken bigint := 0;
begin
  if p_take_back is null then
    perform menzil._refuse_null('Whether to take back');
  elsif p_take_back and v_plan.kind = 'cancel' then
    perform menzil._refuse_value('A cancel cannot be taken back: what it ended has ended.', 'Stop it without taking back; menzil.plan_create(''replay'', ...) sends once more what was cancelled.');
  end if;
  update menzil.plan p set status = 'stopped', ended_at = coalesce(p.ended_at, v_now), takes_back = p_take_back or p.takes_back where p.id = p_id;
  if p_take_back then
    -- A step that is under way ends within half a second. It is not waited for by its lock: the console gives locks a tenth of one.
    while not menzil._hold_progress(p_id) and clock_timestamp() < v_now + interval '1 s' loop
      perform pg_sleep(0.01);
    end loop;
    v_taken := menzil._take_back(p_id, 5000);
  elsif menzil._hold_progress(p_id) then
    delete from menzil.plan_todo t where t.plan_id = p_id;
  end if;
  if v_plan.status <> 'stopped' or v_taken > 0 then
    perform menzil._event('plan.stopped', 'plan', p_id::text, jsonb_build_object('status', v_plan.status), jsonb_build_object('status', 'stopped'),
      jsonb_build_object('kind', v_plan.kind, 'done', (select g.done from menzil.plan_progress g where g.plan_id = p_id), 'taken_back', v_taken));
  end if;
  return v_taken;
end $$;
