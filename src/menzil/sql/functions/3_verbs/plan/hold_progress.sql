-- Locks the progress of a plan for the session that steps it or takes back. False: another session has it.
create or replace function menzil._hold_progress(p_plan_id bigint) returns boolean
language plpgsql set enable_seqscan = off set jit = off as $$
begin
  perform 1 from menzil.plan_progress g where g.plan_id = p_plan_id for update skip locked;
  return found;
end $$;
