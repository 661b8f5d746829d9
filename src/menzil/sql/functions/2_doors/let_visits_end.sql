-- Waits until visits of this lane that began before have ended. Nothing is held afterwards: the lock goes with the savepoint. A lane
-- that does not exist yet cannot have been visited: it is born under its gate's lock.
-- p_most: waits for at most so many milliseconds for each lock. False: a visit may still be open.
drop function if exists menzil._let_visits_end(integer, smallint);
create or replace function menzil._let_visits_end(p_channel_id integer, p_rank smallint, p_most integer default null) returns boolean
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_began timestamptz := clock_timestamp();
begin
  if p_most is not null then
    perform set_config('lock_timeout', p_most::text, true);
  end if;
  perform 1 from menzil.gate g where g.channel_id = p_channel_id
     and not exists (select 1 from menzil.lane_name l where l.channel_id = p_channel_id and l.rank = p_rank) for update;
  -- A lane that was born after the snapshot of a REPEATABLE READ transaction: the insert fails with 40001.
  insert into menzil.lane_name (channel_id, rank) select p_channel_id, p_rank
   where not exists (select 1 from menzil.lane_name l where l.channel_id = p_channel_id and l.rank = p_rank) on conflict do nothing;
  v_began := clock_timestamp();
  perform 1 from menzil.lane l where l.ctid = (
    select n.ctid from menzil.lane n where n.channel_id = p_channel_id and n.rank = p_rank order by n.v desc limit 1) for update;
  raise exception using errcode = 'MZ900';
exception
  when sqlstate 'MZ900' then
    return true;
  when lock_not_available then
    if p_most is null then
      raise;
    end if;
    return false;
  when query_canceled then   -- after these milliseconds it is a lock timeout: see menzil._wait_for_lane
    if (clock_timestamp() - v_began between (p_most - 1) * interval '1 ms' and (p_most + 30) * interval '1 ms') is not true then
      raise;
    end if;
    return false;
end $$;
