-- The ordering keys of these messages are free: their rows leave key_queue, and the log says that the keys may need a head.
create or replace function menzil._free_keys(p_ids bigint[]) returns void
language plpgsql
set enable_seqscan = off set jit = off as $$
declare
  v_found record;
begin
  select array_agg(m.channel_id) as channels, array_agg(m.ordering_key) as keys, array_agg(m.id) as ids into v_found
    from unnest(p_ids) u(id) cross join lateral (select m.id, m.channel_id, m.ordering_key from menzil.message m where m.id = u.id offset 0) m
   where m.ordering_key is not null;
  if v_found.ids is null then
    return;
  end if;
  delete from menzil.key_queue where ctid = any (array(
    select q.at from unnest(v_found.ids, v_found.channels, v_found.keys) u(id, channel_id, ordering_key)
      cross join lateral (select q.ctid as at from menzil.key_queue q
                           where q.channel_id = u.channel_id and q.ordering_key = u.ordering_key and q.waits in (0, 1) and q.id = u.id offset 0) q));
  perform menzil._tell_keys(v_found.channels, v_found.keys);
end $$;
