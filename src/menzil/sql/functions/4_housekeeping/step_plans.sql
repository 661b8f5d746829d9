-- What the job plans does, for half a second at most: steps running plans, those that waited longest first, goes on taking back what
-- stopped plans have made, and notes which parts have ended. A plan with a rate is kept half a minute to a minute ahead: so much a
-- stop without taking back leaves on its way, and so much is due at once after all workers were away. A plan that fails says so
-- and keeps no other waiting. SKIP LOCKED leaves plans that another session is at. Returns how many messages were handled.
create or replace function menzil._step_plans(p_limit integer) returns integer
language plpgsql set timezone = 'UTC' set enable_seqscan = off set jit = off as $$
declare
  v_began timestamptz := clock_timestamp();
  v_idle bigint[] := '{}';   -- plans that have nothing to do at once
  v_id bigint;
  v_step record;
  v_count integer := 0;
begin
  if menzil._is_copy() then
    return 0;
  end if;
  while clock_timestamp() < v_began + interval '500 ms' loop
    v_id := (select p.id from menzil.plan p cross join lateral (select g.* from menzil.plan_progress g where g.plan_id = p.id offset 0) g
              where (p.status = 'running' or p.takes_back) and p.id <> all (v_idle)
                and (p.takes_back or p.rate is null or (g.last_due_at >= v_began + interval '30 s') is not true)
              order by g.stepped_at nulls first, p.id limit 1);
    exit when v_id is null;
    begin
      v_step := menzil._work_on_plan(v_id, p_limit);
      v_count := v_count + v_step.made;
      if not v_step.more then
        v_idle := v_idle || v_id;
      end if;
    exception when others then
      v_idle := v_idle || v_id;
      update menzil.plan_progress g set last_error = left(format('%s: %s', sqlstate, sqlerrm), 1000), stepped_at = clock_timestamp() where g.plan_id = v_id;
    end;
  end loop;
  perform menzil._close_parts(20);
  return v_count;
end $$;

-- One step of one plan, or a part of what it takes back.
create or replace function menzil._work_on_plan(p_id bigint, p_limit integer, out made integer, out more boolean)
language plpgsql as $$
declare
  v_plan menzil.plan;
begin
  made := 0;
  more := false;
  if menzil._hold_progress(p_id) then
    select p.* into v_plan from menzil.plan p where p.id = p_id;   -- after the lock
    if v_plan.status = 'running' then
      select s.made, s.more into made, more from menzil._step_plan(v_plan, p_limit, interval '1 min') s;
    elsif v_plan.takes_back then
      made := menzil._take_back(p_id, p_limit);
      more := true;
    end if;
  end if;
end $$;
