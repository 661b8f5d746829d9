-- Waits, at most 50 ms, until no other transaction holds this version of a lane, and locks what follows it. A lane that is not to be
-- had raises 55P03; PostgreSQL reports a lock timeout that fires in the moment the lock is had as 57014, as if a user had cancelled
-- the call. The caller changes the lane in the subtransaction that it waited in: a row that a subtransaction locks and its parent
-- changes gets a multixact, which every reader of that version would look up.
drop function if exists menzil._wait_for_lane(timestamptz, integer[], boolean);
create or replace function menzil._wait_for_lane(p_at tid) returns void
language plpgsql
set lock_timeout = '50ms' as $$
begin
  perform 1 from menzil.lane l where l.ctid = p_at for update;
end $$;
