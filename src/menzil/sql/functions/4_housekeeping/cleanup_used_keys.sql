-- Forgets idempotency keys that no message holds any more. Walks over the keys in bounded rounds; the job remembers where it
-- was. Returns how many went.
create or replace function menzil.cleanup_used_keys(p_limit integer default 10000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_state jsonb := (select j.state from menzil.job j where j.name = 'keys');
  v_from record;
  v_last record;
  v_count integer;
begin
  perform menzil._check_limit(p_limit, 1000000);
  select coalesce((v_state ->> 'channel')::integer, 0) as channel_id, coalesce(v_state ->> 'key', '') as key into v_from;
  select k.channel_id, k.idempotency_key into v_last
    from (select k.channel_id, k.idempotency_key from menzil.key k where (k.channel_id, k.idempotency_key) > (v_from.channel_id, v_from.key)
           order by k.channel_id, k.idempotency_key limit p_limit) k
   order by k.channel_id desc, k.idempotency_key desc limit 1;
  if not found then
    update menzil.job j set state = null where j.name = 'keys' and j.state is not null;
    if v_state is null then
      return 0;
    end if;
    return menzil.cleanup_used_keys(p_limit);   -- from the beginning again
  end if;
  delete from menzil.key k where k.ctid = any (array(
    select o.ctid from menzil.key o
     where (o.channel_id, o.idempotency_key) > (v_from.channel_id, v_from.key) and (o.channel_id, o.idempotency_key) <= (v_last.channel_id, v_last.idempotency_key)
       -- An expired message that waits keeps its row until a dequeue or a job has ended it: a dequeue that is open may have leased it.
       -- OFFSET 0: else PostgreSQL may read all messages and hash them.
       and ((menzil._end_of(o.message_id)).lo_id is not null or not exists (select 1 from menzil.message m where m.id = o.message_id and m.created_at = o.created_at offset 0))
       and not menzil._holds_key(o.message_id, o.created_at) for update skip locked));
  get diagnostics v_count = row_count;
  update menzil.job j set state = jsonb_build_object('channel', v_last.channel_id, 'key', v_last.idempotency_key) where j.name = 'keys';
  return v_count;
end $$;
