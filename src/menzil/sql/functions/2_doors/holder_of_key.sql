-- The id of the message that holds this key, or null. Another payload is a conflict; an erased one cannot be compared.
create or replace function menzil._holder_of_key(p_channel_id integer, p_key text, p_hash text) returns bigint
language plpgsql as $$
declare
  v_key menzil.key;
begin
  select k.* into v_key from menzil.key k where k.channel_id = p_channel_id and k.idempotency_key = p_key;
  if not found or not menzil._holds_key(v_key.message_id, v_key.created_at) then
    return null;
  elsif v_key.payload_hash <> p_hash then
    perform menzil._refuse_conflict(p_key);
  end if;
  return v_key.message_id;
end $$;
