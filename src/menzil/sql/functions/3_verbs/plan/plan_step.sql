-- One step of a plan by hand, beside the workers that do the same. Returns how many messages it made or cancelled: 0 while another
-- session is at the plan, while it waits, and when it does not run any more; menzil.plans says which.
create or replace function menzil.plan_step(p_id bigint, p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set timezone = 'UTC' set jit = off as $$
declare
  v_plan menzil.plan;
begin
  perform menzil._check_limit(p_limit, 10000);
  if p_id is null then
    perform menzil._refuse_null('The id of a plan');
  elsif not exists (select 1 from menzil.plan p where p.id = p_id) then
    perform menzil._refuse_unknown_plan(p_id);
  end if;
  perform menzil._refuse_copy();
  if not menzil._hold_progress(p_id) then
    return 0;
  end if;
  select p.* into v_plan from menzil.plan p where p.id = p_id;   -- after the lock
  if v_plan.status = 'draft' then
    raise exception using errcode = '55000', message = format('Plan %s is a draft.', p_id), hint = 'Let it run first: menzil.plan_run.';
  elsif v_plan.status = 'running' then
    return (menzil._step_plan(v_plan, p_limit, interval '1 h')).made;
  end if;
  return 0;
end $$;
