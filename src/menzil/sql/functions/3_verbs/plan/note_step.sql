-- Notes how far a plan is, and why it waits. A plan whose last message is not due yet is not done: it can still be stopped.
create or replace function menzil._note_step(p_plan menzil.plan, p_made integer, p_skipped bigint, p_last_due_at timestamptz, p_waits text, p_now timestamptz) returns void
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_progress menzil.plan_progress;
begin
  update menzil.plan_progress g set done = g.done + p_made, skipped = g.skipped + p_skipped, last_due_at = greatest(g.last_due_at, p_last_due_at), stepped_at = p_now,
      last_error = left(nullif(concat_ws(' ', 'The plan waits. ' || p_waits, (
        select string_agg(t.left_out, ' ') from (select t.left_out from menzil.plan_channel t where t.plan_id = p_plan.id and t.left_out is not null limit 3) t)), ''), 1000)
   where g.plan_id = p_plan.id returning g.* into v_progress;
  if coalesce(v_progress.last_due_at <= p_now, true) and not exists (select 1 from menzil.plan_channel t where t.plan_id = p_plan.id and not t.finished) then
    update menzil.plan p set status = 'done', ended_at = p_now where p.id = p_plan.id and p.status = 'running';
    if found then
      perform menzil._event('plan.done', 'plan', p_plan.id::text, jsonb_build_object('status', 'running'), jsonb_build_object('status', 'done'),
        jsonb_build_object('kind', p_plan.kind, 'done', v_progress.done, 'skipped', v_progress.skipped));
    end if;
  end if;
end $$;
