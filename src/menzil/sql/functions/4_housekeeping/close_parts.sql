-- Parts of plans whose messages have all ended: how they ended is noted, so that no page asks for each of them again. A part that
-- is still open is asked again later, the later the older it is. Returns how many were closed.
create or replace function menzil._close_parts(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_part menzil.plan_part;
  v_ended record;
  v_count integer := 0;
begin
  for v_part in select t.* from menzil.plan_part t where t.open and t.check_at <= v_now order by t.check_at limit p_limit for update skip locked loop
    select coalesce(sum(s.messages) filter (where s.status = 'completed'), 0) as completed, coalesce(sum(s.messages) filter (where s.status = 'dead'), 0) as dead,
           coalesce(sum(s.messages) filter (where s.status = 'expired'), 0) as expired, coalesce(sum(s.messages) filter (where s.status = 'cancelled'), 0) as cancelled
      into v_ended from menzil._part_outcome(v_part) s;
    if v_ended.completed + v_ended.dead + v_ended.expired + v_ended.cancelled >= v_part.n then
      update menzil.plan_part t set open = false, completed = v_ended.completed, dead = v_ended.dead, expired = v_ended.expired, cancelled = v_ended.cancelled
       where t.plan_id = v_part.plan_id and t.lo_id = v_part.lo_id;
      v_count := v_count + 1;
    else
      update menzil.plan_part t set check_at = v_now + least(interval '1 h', greatest(interval '10 s', (v_now - t.due_at) / 10))
       where t.plan_id = v_part.plan_id and t.lo_id = v_part.lo_id;
    end if;
  end loop;
  return v_count;
end $$;
