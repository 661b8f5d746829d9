-- Ids that the engine finds by a key: the message an ordering key lets pass and those behind it, and the message that holds an
-- idempotency key, which may have ended. In one channel, or in all of them. At most p_limit, the oldest of each channel first.
create or replace function menzil.messages_with_key(
  p_ordering_key text default null, p_idempotency_key text default null, p_channel text default null, p_limit integer default 1000
) returns table (id bigint)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_id integer := case when p_channel is not null then (menzil._channel_for(p_channel)).id end;
begin
  perform menzil._check_limit(p_limit, 10000);
  return query
    select f.id from (
      select k.id from menzil.channel c
        cross join lateral (select k.id from menzil.key_queue k where k.channel_id = c.id and k.ordering_key = p_ordering_key order by k.waits, k.id limit p_limit) k
       where p_ordering_key is not null and (v_id is null or c.id = v_id)
      union
      select k.message_id from menzil.channel c
        join menzil.key k on k.channel_id = c.id and k.idempotency_key = p_idempotency_key
       where p_idempotency_key is not null and (v_id is null or c.id = v_id)) f
     limit p_limit;
end $$;
