-- Takes back what a stopped plan has made and no consumer has leased: whole parts, those that are due first first, until p_limit
-- messages were asked for. Does nothing while another session is at the plan. Returns how many were taken back.
create or replace function menzil._take_back(p_plan_id bigint, p_limit integer) returns bigint
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_redrive boolean := (select p.kind = 'redrive' from menzil.plan p where p.id = p_plan_id);
  v_part menzil.plan_part;
  v_asked integer := 0;
  v_taken bigint := 0;
begin
  if not menzil._hold_progress(p_plan_id) then
    return 0;
  end if;
  for v_part in
    select t.* from menzil.plan_part t where t.plan_id = p_plan_id and t.open and not t.taken order by t.due_at, t.lo_id
  loop
    exit when v_asked >= p_limit;
    v_taken := v_taken + cardinality(menzil._cancel_these(coalesce(v_part.ids, array(select generate_series(v_part.lo_id, v_part.hi_id))), v_redrive));
    v_asked := v_asked + v_part.n;
    -- From now on each message of the part is asked for: some ended before they were due.
    update menzil.plan_part t set taken = true, due_at = least(t.due_at, clock_timestamp()), check_at = clock_timestamp()
     where t.plan_id = p_plan_id and t.lo_id = v_part.lo_id;
  end loop;
  update menzil.plan_progress g set taken_back = g.taken_back + v_taken, stepped_at = clock_timestamp() where g.plan_id = p_plan_id;
  if not exists (select 1 from menzil.plan_part t where t.plan_id = p_plan_id and t.open and not t.taken) then
    update menzil.plan p set takes_back = false where p.id = p_plan_id;
  end if;
  return v_taken;
end $$;
