-- The bulk send that a message came with. All messages of one have the same time of creation; other sends may draw ids between theirs.
create or replace function menzil._bulk_send_of(p_id bigint, p_created_at timestamptz) returns text
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select b.send_id
    from (select b.* from menzil.bulk_send b where b.first_id is not null and b.first_id <= p_id order by b.first_id desc limit 20) b
   where b.last_id >= p_id and exists (select 1 from menzil.message m where m.id in (b.first_id, b.last_id) and m.created_at = p_created_at) limit 1
$$;
