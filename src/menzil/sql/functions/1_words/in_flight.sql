-- In flight, by channel. A lease of a channel with a gate or a size limit names its channel. Leases of other channels may hold
-- messages of several: at most 20,000 of those messages are asked for their channel.
create or replace function menzil._in_flight(p_channel_id integer default null) returns table (channel_id integer, count bigint)
language sql stable set enable_seqscan = on set jit = off as $$
  select q.channel_id, sum(q.n)::bigint
    from (select l.channel_id, coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1) as n from menzil.lease l where l.channel_id is not null
          union all
          select m.channel_id, 1
            from menzil._channels_of(array(select u.id from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) u(id) where l.channel_id is null limit 20000)) m) q
   where p_channel_id is null or q.channel_id = p_channel_id group by q.channel_id
$$;
