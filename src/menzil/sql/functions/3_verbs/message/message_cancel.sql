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
  perform menzil._let_visits_end(v_message.channel_id, v_message.rank);   -- 3. visits of the lane that began before have ended
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
