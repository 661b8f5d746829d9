-- Waits until visits of this lane that began before have ended. Nothing is held afterwards: the lock goes with the savepoint. A lane
-- that does not exist yet cannot have been visited: it is born under its gate's lock.
create or replace function menzil._let_visits_end(p_channel_id integer, p_rank smallint) returns void
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  perform 1 from menzil.gate g where g.channel_id = p_channel_id
     and not exists (select 1 from menzil.lane_name l where l.channel_id = p_channel_id and l.rank = p_rank) for update;
  -- A lane that was born after the snapshot of a REPEATABLE READ transaction: the insert fails with 40001.
  insert into menzil.lane_name (channel_id, rank) select p_channel_id, p_rank
   where not exists (select 1 from menzil.lane_name l where l.channel_id = p_channel_id and l.rank = p_rank) on conflict do nothing;
  perform 1 from menzil.lane l where l.ctid = (
    select n.ctid from menzil.lane n where n.channel_id = p_channel_id and n.rank = p_rank order by n.v desc limit 1) for update;
  raise exception using errcode = 'MZ900';
exception when sqlstate 'MZ900' then
  null;
end $$;
