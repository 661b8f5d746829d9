-- Messages that wait, by channel: in runs, in lines, on the schedule, behind ordering keys. Runs and lines know how many they are.
create or replace function menzil._count_waiting(p_channel_id integer default null) returns table (channel_id integer, n bigint)
language sql stable set enable_seqscan = on set jit = off as $$
  select q.channel_id, sum(q.n)::bigint
    from (select r.channel_id, sum(r.n) as n from menzil.run r where p_channel_id is null or r.channel_id = p_channel_id group by 1
          union all select l.channel_id, - sum(l.gone) from menzil.lane l where l.gone > 0 and (p_channel_id is null or l.channel_id = p_channel_id) group by 1
          union all select n.channel_id, sum(n.n) from (select n.* from menzil.line n union all select a.* from menzil.aside a) n
                     where n.rank is not null and n.flags & 64 = 0 and (p_channel_id is null or n.channel_id = p_channel_id) group by 1
          union all select s.channel_id, count(*) from menzil.scheduled s where p_channel_id is null or s.channel_id = p_channel_id group by 1
          union all select k.channel_id, count(*) from menzil.key_queue k where k.waits = 1 and (p_channel_id is null or k.channel_id = p_channel_id) group by 1
          union all select m.channel_id, - count(*) from menzil._channels_of(array(select w.id from menzil.withdrawn w)) m
                     where p_channel_id is null or m.channel_id = p_channel_id group by 1) q
   group by 1 having sum(q.n) > 0
$$;
