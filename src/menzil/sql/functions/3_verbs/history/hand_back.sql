-- These redriven messages are being cancelled: their dead letters are failed again, as if they had not been redriven. Where a dead
-- letter blocks its ordering key, the key passes back to it before the message lets it go.
create or replace function menzil._hand_back(p_ids bigint[]) returns void
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
  with back as materialized (
    select d.at, d.original_message_id as old_id, q.at as key_at
      from unnest(p_ids) u(id)
      cross join lateral (select m.id, m.channel_id, m.ordering_key, m.redrive_of from menzil.message m where m.id = u.id offset 0) m
      cross join lateral (select d.ctid as at, d.original_message_id from menzil.dead_letter d
                           where d.original_message_id = m.redrive_of and d.redriven_id = m.id and d.status = 'redriven' for update offset 0) d
      left join lateral (select q.ctid as at from menzil.key_queue q
                          where q.channel_id = m.channel_id and q.ordering_key = m.ordering_key and q.waits = 0 and q.id = m.id
                            and (select c.on_dead from menzil.channel c where c.id = m.channel_id) = 'block' offset 0) q on true
  ), passed as (
    update menzil.key_queue q set id = b.old_id from back b where q.ctid = b.key_at
  )
  update menzil.dead_letter d set status = 'failed', redriven_at = null, redriven_id = null, blocks_key = b.key_at is not null from back b where d.ctid = b.at;
end $$;
