-- Live messages of one channel, counted by the rows that hold them. The lease table is small: it holds only what is in flight.
create or replace function menzil._count_channel(p_channel_id integer) returns bigint
language sql stable set enable_seqscan = on as $$
  select coalesce((select sum(r.n) from menzil.run r where r.channel_id = p_channel_id), 0)
       - coalesce((select sum(l.gone) from menzil.lane l where l.channel_id = p_channel_id and l.gone > 0), 0)
       + coalesce((select sum(n.n) from menzil.line n where n.channel_id = p_channel_id and n.flags & 64 = 0), 0)
       + coalesce((select sum(n.n) from menzil.aside n where n.channel_id = p_channel_id and n.flags & 64 = 0), 0)
       + coalesce((select sum(coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1)) from menzil.lease l where l.channel_id = p_channel_id), 0)
       + (select count(*) from menzil._channels_of(array(select u.id from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) u(id) where l.channel_id is null)) m
           where m.channel_id = p_channel_id)
       + (select count(*) from menzil.scheduled s where s.channel_id = p_channel_id)
       + (select count(*) from menzil.key_queue k where k.channel_id = p_channel_id and k.waits = 1)
       - (select count(*) from menzil._channels_of(array(select w.id from menzil.withdrawn w)) m where m.channel_id = p_channel_id)
$$;
