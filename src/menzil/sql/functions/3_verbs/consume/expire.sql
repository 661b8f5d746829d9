-- Ends waiting messages whose time is over: on the schedule, behind their ordering key, or in a lane that can be locked now.
-- A message in flight is looked at again when its lease ends. A message that cannot be ended keeps no other waiting.
create or replace function menzil._expire(p_now timestamptz, p_limit integer) returns integer
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_due record;
  v_count integer := 0;
begin
  for v_due in
    select e.expires_at, e.id, e.created_at from menzil.expiring e where e.expires_at <= p_now order by e.expires_at, e.id limit p_limit for update skip locked
  loop
    begin
      v_count := v_count + menzil._expire_one(v_due.id, v_due.created_at, v_due.expires_at, p_now)::integer;
    exception when others then
      if not menzil._is_passing(sqlstate) then
        perform menzil._note_stuck(v_due.id, sqlerrm, p_now);
      end if;
      perform menzil._expire_later(v_due.id, v_due.expires_at, p_now + case when menzil._is_passing(sqlstate) then interval '1 s' else interval '5 min' end);
    end;
  end loop;
  return v_count;
end $$;

create or replace function menzil._expire_one(p_id bigint, p_created_at timestamptz, p_expires_at timestamptz, p_now timestamptz) returns boolean
language plpgsql
set enable_seqscan = off set jit = off as $$
declare
  v_message record;
  v_unlock timestamptz;
begin
  select m.channel_id, (10 - m.priority)::smallint as rank, m.ordering_key into v_message from menzil.message m
   where m.id = p_id and m.created_at = p_created_at for update skip locked;
  if found and (menzil._end_of(p_id)).lo_id is null then
    if menzil._lock_lanes(array[v_message.channel_id::bigint * 16 + v_message.rank]) = '{}' then
      return menzil._expire_later(p_id, p_expires_at, p_now + interval '1 s');   -- another transaction is at the lane
    end if;
    -- With the lane locked no visit is under way: the message waits, or is in flight, or has ended. The lease is asked for first:
    -- a settle that commits between the two questions is then seen by the second.
    v_unlock := (select max(l.unlock_at) from menzil.lease l where l.lo_id <= p_id and l.hi_id >= p_id and (l.ids is null or p_id = any (l.ids)));
    if (menzil._end_of(p_id)).lo_id is null then
      if v_unlock is not null then
        return menzil._expire_later(p_id, p_expires_at, greatest(v_unlock, p_now + interval '1 s'));
      end if;
      if not menzil._stop_waiting(p_id, v_message.channel_id, v_message.ordering_key)
         and menzil._take_out(v_message.channel_id, v_message.rank, array[p_id], false) = '{}' then
        insert into menzil.withdrawn (id) values (p_id) on conflict do nothing;   -- it stands in a line that is not folded yet
      end if;
      perform menzil._end_waiting(array[p_id], 'expired', p_now);
      delete from menzil.expiring e where e.expires_at = p_expires_at and e.id = p_id;
      return true;
    end if;
  elsif not found and exists (select 1 from menzil.message m where m.id = p_id and m.created_at = p_created_at) then
    return menzil._expire_later(p_id, p_expires_at, p_now + interval '1 s');   -- another transaction cancels or leases it
  end if;
  delete from menzil.expiring e where e.expires_at = p_expires_at and e.id = p_id;
  return false;
end $$;

-- A message that cannot be ended now is tried again later, so that it keeps no other waiting. Returns false: it has not ended.
create or replace function menzil._expire_later(p_id bigint, p_expires_at timestamptz, p_again timestamptz) returns boolean
language plpgsql
set enable_seqscan = off set jit = off as $$
begin
  update menzil.expiring e set expires_at = p_again where e.expires_at = p_expires_at and e.id = p_id;
  return false;
end $$;
