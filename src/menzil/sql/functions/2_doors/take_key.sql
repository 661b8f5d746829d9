-- Idempotency keys belong to a channel. The row of a key names the message that holds it. A message holds its key while it
-- lives and, if it completed, for the retention time; the key of a message that failed, expired or was cancelled is free.

-- Gives the key to message p_id, which the caller inserts next, and returns p_id; or returns the id of the message that
-- holds the key. Waits for an open transaction that took the same key: whether it commits decides.
create or replace function menzil._take_key(p_channel_id integer, p_key text, p_id bigint, p_hash text, p_now timestamptz) returns bigint
language plpgsql as $$
declare
  v_key menzil.key;
begin
  loop
    insert into menzil.key (channel_id, idempotency_key, message_id, payload_hash, created_at) values (p_channel_id, p_key, p_id, p_hash, p_now)
      on conflict do nothing;
    if found then
      return p_id;
    end if;
    select k.* into v_key from menzil.key k where k.channel_id = p_channel_id and k.idempotency_key = p_key for update;
    continue when not found;   -- the clean-up took it away
    if menzil._holds_key(v_key.message_id, v_key.created_at) then
      if v_key.payload_hash <> p_hash then
        perform menzil._refuse_conflict(p_key);
      end if;
      return v_key.message_id;
    end if;
    update menzil.key k set message_id = p_id, payload_hash = p_hash, created_at = p_now where k.channel_id = p_channel_id and k.idempotency_key = p_key;
    return p_id;
  end loop;
end $$;
