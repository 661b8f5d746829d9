-- Lets a draft or a paused plan run. A draft must be fresh: not older than 10 minutes, and about as many messages as it was counted
-- for. Workers step running plans from now on, and so does every session that calls plan_step.
create or replace function menzil.plan_run(p_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set timezone = 'UTC' set jit = off as $$
declare
  v_plan menzil.plan := menzil._plan_for(p_id);
  v_now timestamptz := clock_timestamp();
  v_total bigint;
  v_exact boolean;
begin
  if v_plan.status = 'running' then
    return;
  elsif v_plan.status in ('stopped', 'done') then
    perform menzil._refuse_ended_plan(v_plan);
  end if;
  perform menzil._refuse_copy();
  if v_plan.status = 'draft' then
    if v_plan.created_at < v_now - interval '10 min' then
      raise exception using errcode = '55000',
        message = format('Plan %s was counted %s minutes ago, and a draft is good for 10 minutes.', p_id, floor(extract(epoch from v_now - v_plan.created_at) / 60)),
        hint = 'Make it again with `menzil plan create` or menzil.plan_create(), and look at the new count.';
    end if;
    -- Two estimates differ by chance, so only counts are compared. A cancel reaches no message that was sent after it was made, and in a
    -- queue at work what waits changes from moment to moment: it is not compared.
    if v_plan.counted_exactly and v_plan.kind <> 'cancel' then
      select c.total, c.exact into v_total, v_exact from menzil._count_plan(v_plan.kind, v_plan.filter, v_plan.top_id, v_plan.created_at) c;
    end if;
    if v_exact and abs(v_total - v_plan.counted) * 10 > v_plan.counted then
      raise exception using errcode = '55000',
        message = format('Plan %s was counted as %s, and now there are %s: more than a tenth of it has changed.', p_id, v_plan.counted, v_total),
        hint = 'Make it again with `menzil plan create` or menzil.plan_create(), and look at the new count.';
    end if;
  end if;
  update menzil.plan p set status = 'running', started_at = coalesce(p.started_at, v_now) where p.id = p_id;
  perform menzil._event(case when v_plan.status = 'draft' then 'plan.started' else 'plan.resumed' end, 'plan', p_id::text,
    jsonb_build_object('status', v_plan.status), jsonb_build_object('status', 'running'), jsonb_build_object('kind', v_plan.kind, 'counted', v_plan.counted));
end $$;
