-- What has become of the messages that a plan made: completed, dead, expired, cancelled, taken_back, in_flight, retrying (came back and
-- waits for its next try) and waiting. Parts that have ended know it; of parts that have not, the first 40 are asked, about 40,000
-- messages, and the others are counted as unknown. A cancel makes no messages: those it ended are cancelled.
create or replace function menzil.plan_outcome(p_id bigint) returns table (status text, messages bigint)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_plan menzil.plan := menzil._known_plan(p_id);
  v_progress menzil.plan_progress;
begin
  select g.* into v_progress from menzil.plan_progress g where g.plan_id = p_id;
  if v_plan.kind = 'cancel' then
    return query select 'cancelled', v_progress.done where v_progress.done > 0;
    return;
  end if;
  return query
    with asked as materialized (
      select t as part from menzil.plan_part t where t.plan_id = p_id and t.open and t.due_at <= clock_timestamp() order by t.due_at limit 40
    ), found as (
      select o.status, o.messages from asked a cross join lateral menzil._part_outcome(a.part) o
      union all select 'waiting', t.n from menzil.plan_part t where t.plan_id = p_id and t.open and t.due_at > clock_timestamp()
      union all select u.status, u.n from menzil.plan_part t
                  cross join lateral (values ('completed', t.completed), ('dead', t.dead), ('expired', t.expired), ('cancelled', t.cancelled)) u(status, n)
                 where t.plan_id = p_id and not t.open
      union all select 'cancelled', - v_progress.taken_back
      union all select 'taken_back', v_progress.taken_back
    ), told as (
      select f.status, sum(f.messages)::bigint as messages from found f group by 1
    )
    select t.status, t.messages from told t where t.messages > 0
    union all
    select 'unknown', v_progress.done - s.messages from (select sum(t.messages)::bigint as messages from told t) s where v_progress.done > s.messages
    order by 2 desc, 1;
end $$;
