-- A paused plan begins no more steps; what it has made goes on. plan_run lets it run again.
create or replace function menzil.plan_pause(p_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_plan menzil.plan := menzil._plan_for(p_id);
begin
  if v_plan.status in ('stopped', 'done') then
    perform menzil._refuse_ended_plan(v_plan);
  elsif v_plan.status = 'draft' then
    raise exception using errcode = '55000', message = format('Plan %s is a draft and has not run yet.', p_id), hint = 'Let it run with menzil.plan_run, or leave it: drafts do nothing.';
  elsif v_plan.status = 'running' then
    update menzil.plan p set status = 'paused' where p.id = p_id;
    perform menzil._event('plan.paused', 'plan', p_id::text, jsonb_build_object('status', 'running'), jsonb_build_object('status', 'paused'),
      jsonb_build_object('kind', v_plan.kind, 'done', (select g.done from menzil.plan_progress g where g.plan_id = p_id)));
  end if;
end $$;
