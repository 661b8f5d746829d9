-- One step of a cancel. The first one writes down which messages wait; from then on each step ends some of them. A message that was
-- leased meanwhile, or has ended, is left alone.
create or replace function menzil._step_cancel(p_plan menzil.plan, p_limit integer, out made integer, out more boolean)
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_part menzil.plan_todo;
  v_asked integer := 0;
begin
  update menzil.plan_progress g set gathered = true where g.plan_id = p_plan.id and not g.gathered;
  if found then
    perform menzil._gather_cancel(p_plan);
  end if;
  made := 0;
  select t.* into v_part from menzil.plan_todo t where t.plan_id = p_plan.id order by t.lo_id limit 1;
  if found then
    v_asked := least(p_limit, cardinality(v_part.ids));
    made := cardinality(menzil._cancel_these(v_part.ids[: v_asked]));
    if v_asked = cardinality(v_part.ids) then
      delete from menzil.plan_todo t where t.plan_id = p_plan.id and t.lo_id = v_part.lo_id;
    else
      update menzil.plan_todo t set ids = v_part.ids[v_asked + 1 :], lo_id = v_part.ids[v_asked + 1] where t.plan_id = p_plan.id and t.lo_id = v_part.lo_id;
    end if;
  end if;
  more := exists (select 1 from menzil.plan_todo t where t.plan_id = p_plan.id);
  if not more then
    update menzil.plan_channel t set finished = true where t.plan_id = p_plan.id and not t.finished;
  end if;
  perform menzil._note_step(p_plan, made, v_asked - made, null, null, v_now);
end $$;

-- Writes down, a thousand in a row, which messages a cancel is to end: those that wait now and were sent before the plan was made.
create or replace function menzil._gather_cancel(p_plan menzil.plan) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_since timestamptz := (p_plan.filter ->> 'since')::timestamptz;
  v_until timestamptz := (p_plan.filter ->> 'until')::timestamptz;
  v_given bigint[] := case when p_plan.filter ? 'ids' then array(select (i.id)::bigint from jsonb_array_elements_text(p_plan.filter -> 'ids') i(id)) end;
begin
  insert into menzil.plan_todo (plan_id, lo_id, ids)
    select p_plan.id, min(q.id), array_agg(q.id order by q.id)
      from (select w.id, row_number() over (order by w.id) as n
              from (select u.id from unnest(v_given) u(id)
                      cross join lateral (select 1 from menzil.message m where m.id = u.id limit 1 offset 0) m
                    union
                    select w.id from menzil.plan_channel t cross join lateral menzil._waiting_ids(t.channel_id) w(id)
                     where v_given is null and t.plan_id = p_plan.id and w.id <= p_plan.top_id
                       and (v_since is null and v_until is null
                            or exists (select 1 from menzil.message m where m.id = w.id and m.created_at >= coalesce(v_since, '-infinity') and m.created_at < coalesce(v_until, 'infinity')))) w) q
     group by (q.n - 1) / 1000;
end $$;
