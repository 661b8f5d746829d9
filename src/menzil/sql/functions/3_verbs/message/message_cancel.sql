-- Cancels a waiting message inside the caller's transaction, however long that stays open; consumers never wait for it.
-- False: too late, the message is in flight or has ended. A dead letter that blocks its ordering key stops blocking it.
create or replace function menzil.message_cancel(p_id bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_message record;
begin
  perform menzil._check_known(p_id);
  perform menzil._tell_withdrawal();                           -- 1. visits that begin from now on look out
  select m.channel_id, (10 - m.priority)::smallint as rank, m.ordering_key into v_message
    from menzil.message m where m.id = p_id for update skip locked;
  if not found then                                            -- 2. a visit that looks out has it: too late
    return false;
  end if;
  -- 3. Visits of the lane that began before have ended. Nothing is held afterwards: the lock goes with the savepoint. A lane
  -- that does not exist yet cannot have been visited: it is born under its gate's lock.
  begin
    perform 1 from menzil.gate g where g.channel_id = v_message.channel_id
       and not exists (select 1 from menzil.lane_name l where l.channel_id = v_message.channel_id and l.rank = v_message.rank) for update;
    -- A lane that was born after the snapshot of a REPEATABLE READ transaction: the insert fails with 40001.
    insert into menzil.lane_name (channel_id, rank) select v_message.channel_id, v_message.rank
     where not exists (select 1 from menzil.lane_name l where l.channel_id = v_message.channel_id and l.rank = v_message.rank) on conflict do nothing;
    perform 1 from menzil.lane l where l.ctid = (
      select n.ctid from menzil.lane n where n.channel_id = v_message.channel_id and n.rank = v_message.rank order by n.v desc limit 1) for update;
    raise exception using errcode = 'MZ900';
  exception when sqlstate 'MZ900' then
    null;
  end;
  -- First the lease: a settle that commits between the two questions shows its end in the second.
  if menzil._lease_of(p_id) is not null then
    return false;
  elsif (menzil._end_of(p_id)).lo_id is not null then
    update menzil.dead_letter d set blocks_key = false where d.original_message_id = p_id and d.blocks_key;
    if not found then
      return false;
    end if;
    perform menzil._free_keys(array[p_id]);
    return true;
  end if;
  if not menzil._stop_waiting(p_id, v_message.channel_id, v_message.ordering_key) then
    insert into menzil.withdrawn (id) values (p_id);           -- 4. it stands in a line or a run: the next visit leaves it out
    insert into menzil.line (channel_id, rank, due_at, first_id, n, flags, ids)
      values (v_message.channel_id, v_message.rank, v_now, p_id, 1, 64, array[p_id]);
  end if;
  perform menzil._end_waiting(array[p_id], 'cancelled', v_now);
  perform menzil._tell_withdrawal();
  return true;
end $$;

-- Consumers must not wait for a transaction that withdraws messages, however long it stays open: they are told to look out
-- until every transaction that is as old has ended.
create or replace function menzil._tell_withdrawal() returns void
language plpgsql as $$
declare
  v_xid bigint := pg_current_xact_id()::text::bigint;
begin
  perform setval('menzil.withdrawn_at', menzil._microseconds(clock_timestamp()));
  if menzil._register('menzil.withdrawn_xid') < v_xid then
    perform setval('menzil.withdrawn_xid', v_xid);
  end if;
end $$;
