-- Idempotency keys belong to a channel. The row of a key names the message that holds it. A message holds its key while it
-- lives and, if it completed, for the retention time; the key of a message that failed, expired or was cancelled is free.
-- An expired message that waits is taken for ended.

-- Gives the key to message p_id, which the caller inserts next, and returns p_id; or returns the id of the message that
-- holds the key. Waits for an open transaction that took the same key: whether it commits decides. Plans are pinned: where statistics of
-- a month mislead, the planner would read the month for each key.
create or replace function menzil._take_key(p_channel_id integer, p_key text, p_id bigint, p_hash text, p_now timestamptz) returns bigint
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_key menzil.key;
  v_ended boolean;
  v_held boolean;
  v_lane record;
begin
  loop
    insert into menzil.key (channel_id, idempotency_key, message_id, payload_hash, created_at) values (p_channel_id, p_key, p_id, p_hash, p_now)
      on conflict do nothing;
    if found then
      return p_id;
    end if;
    select k.* into v_key from menzil.key k where k.channel_id = p_channel_id and k.idempotency_key = p_key for update;
    continue when not found;   -- the clean-up took it away
    v_ended := (menzil._end_of(v_key.message_id)).lo_id is not null;   -- asked first: what ends meanwhile is asked for again below
    v_held := menzil._holds_key(v_key.message_id, v_key.created_at);
    if not v_held and not v_ended then   -- it expired and waits, or is not there
      select m.channel_id, (10 - m.priority)::smallint as rank into v_lane
        from menzil.message m where m.id = v_key.message_id and m.created_at = v_key.created_at;
      -- A dequeue that began before it expired may have leased it and be open still. In REPEATABLE READ a lane that another transaction
      -- visited since the snapshot fails with 40001.
      if found then
        v_held := not menzil._visits_ended(v_lane.channel_id, v_lane.rank);
        if not v_held then   -- a statement of its own: its snapshot is younger than what was waited for
          v_held := menzil._holds_key(v_key.message_id, v_key.created_at);
        end if;
      end if;
    end if;
    if v_held then
      if v_key.payload_hash <> p_hash then
        perform menzil._refuse_conflict(p_key);
      end if;
      return v_key.message_id;
    end if;
    update menzil.key k set message_id = p_id, payload_hash = p_hash, created_at = p_now where k.channel_id = p_channel_id and k.idempotency_key = p_key;
    return p_id;
  end loop;
end $$;
