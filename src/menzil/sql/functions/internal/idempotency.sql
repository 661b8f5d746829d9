-- Idempotency keys belong to a channel. A live message holds its key in the unique index of message; an ended one
-- leaves it in used_key for the retention time, written in the transaction that ends it.

create or replace function menzil._payload_hash(p_payload jsonb, p_content bytea) returns text
language sql immutable parallel safe
return case when p_content is null then md5(p_payload::text) else md5(p_content) end;

-- The id of the ended message that used this key, or null. Another payload is a conflict.
-- p_sure: the message is in, nobody else can get the key any more; an old snapshot must not overlook one written since.
create or replace function menzil._used_key(p_channel_id integer, p_key text, p_hash text, p_sure boolean default false) returns bigint
language plpgsql as $$
declare
  v_id bigint;
  v_hash text;
begin
  if p_sure and current_setting('transaction_isolation') <> 'read committed' then
    -- It cannot see it, but inserting the same key can, and fails with a serialization error (40001).
    insert into menzil.used_key (channel_id, idempotency_key, message_id, until_at) values (p_channel_id, p_key, 0, '-infinity')
      on conflict do nothing;
  end if;
  select u.message_id, u.payload_hash into v_id, v_hash
    from menzil.used_key u
   where u.channel_id = p_channel_id and u.idempotency_key = p_key and u.until_at > clock_timestamp();
  if v_id is not null and v_hash is distinct from p_hash then
    perform menzil._refuse_conflict(p_key);
  end if;
  return v_id;
end $$;

-- The id of the message that holds this key, which an insert has just run into; null when it ended and left nothing.
create or replace function menzil._holder_of_key(p_channel_id integer, p_key text, p_hash text) returns bigint
language plpgsql as $$
declare
  v_id bigint;
  v_hash text;
begin
  select m.id, m.payload_hash into v_id, v_hash
    from menzil.message m where m.channel_id = p_channel_id and m.idempotency_key = p_key;
  if v_id is null then
    return menzil._used_key(p_channel_id, p_key, p_hash);
  elsif v_hash is distinct from p_hash then
    perform menzil._refuse_conflict(p_key);
  end if;
  return v_id;
end $$;
