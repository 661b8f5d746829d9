-- True the first time a consumer shows this key, false ever after (for inbox_retention seconds). In the consumer's own
-- transaction: what it did for the message and the mark commit together, or neither does.
create or replace function menzil.inbox_claim(p_consumer text, p_key text) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
begin
  if p_consumer is null or p_key is null then
    perform menzil._refuse_null('A consumer and a key');
  elsif length(p_consumer) not between 1 and 255 or octet_length(p_key) not between 1 and 1024 then   -- an index key
    perform menzil._refuse_value('A consumer has 1 to 255 characters, a key 1 to 1024 bytes.', 'Use the message id, or the sender''s own key.');
  end if;
  insert into menzil.inbox (consumer, message_key) values (p_consumer, p_key) on conflict do nothing;
  return found;
end $$;
