-- Waits, at most 50 ms, for the lane whose turn has come, if another transaction holds it. 0: there is no such lane, or it was not
-- to be had; 1: no other transaction held it; 2: it was waited for.
-- PostgreSQL reports a lock timeout that fires in the moment the lock is had as 57014, as if a user had cancelled the call;
-- after the 50 ms it is taken for what it is.
create or replace function menzil._wait_for_lane(p_floor timestamptz, p_only integer[], p_push boolean) returns integer
language plpgsql
set lock_timeout = '50ms' as $$
declare
  v_now timestamptz := clock_timestamp();
  v_rank smallint := menzil._next_rank(0::smallint, v_now, p_floor, p_only, p_push);
  v_at tid;
begin
  if v_rank is null then
    return 0;
  elsif p_only is not null and not p_push then
    v_at := (menzil._lanes_of(p_only, v_rank, v_now, 1))[1];
  elsif p_push then
    v_at := (select l.ctid from menzil.lane l where l.push and l.rank = v_rank and l.next_at >= p_floor and l.next_at <= v_now
                and (p_only is null or l.channel_id <> all (p_only)) order by l.next_at limit 1);
  else
    v_at := (select l.ctid from menzil.lane l where l.rank = v_rank and l.next_at >= p_floor and l.next_at <= v_now order by l.next_at limit 1);
  end if;
  perform 1 from menzil.lane l where l.ctid = v_at for update skip locked;
  if found then
    return 1;
  end if;
  perform 1 from menzil.lane l where l.ctid = v_at for update;
  return 2;
exception
  when lock_not_available then
    return 0;
  when query_canceled then
    if clock_timestamp() - v_now not between interval '49 ms' and interval '80 ms' then
      raise;
    end if;
    return 2;
end $$;
