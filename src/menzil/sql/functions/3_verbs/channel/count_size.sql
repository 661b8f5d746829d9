-- Corrects the size log of a channel that has or gets a max_size: what it holds now and the log does not say. One statement, so
-- that the log and the count are of one snapshot. It appends only, so it waits for no send that is summing the log up.
create or replace function menzil._count_size(p_channel_id integer) returns void
language sql set enable_seqscan = off set jit = off as $$
  insert into menzil.size_change (channel_id, change)
    select p_channel_id, q.missing
      from (select menzil._count_channel(p_channel_id) - coalesce(sum(s.change), 0) as missing from menzil.size_change s where s.channel_id = p_channel_id) q
     where q.missing <> 0
$$;
