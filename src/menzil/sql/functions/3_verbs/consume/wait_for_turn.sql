-- Waits, at most 50 ms, for the lane whose turn has come, if another transaction holds it. False: there is no such lane, or the lock
-- was not granted in time. After the 50 ms a call that was cancelled is taken for a lock timeout: see _wait_for_lane.
create or replace function menzil._wait_for_turn(p_floor timestamptz, p_only integer[], p_push boolean) returns boolean
language plpgsql as $$
declare
  v_now timestamptz;
  v_lane record;
begin
  v_lane := menzil._held_lane(p_floor, p_only, p_push);
  if v_lane.at is not null and v_lane.free is null then
    v_now := clock_timestamp();
    perform menzil._wait_for_lane(v_lane.at);
  end if;
  return v_lane.at is not null;
exception
  when lock_not_available then
    return false;
  when query_canceled then
    if clock_timestamp() - v_now not between interval '49 ms' and interval '80 ms' then
      raise;
    end if;
    return true;
end $$;
