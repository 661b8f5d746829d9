-- The messages of a channel that wait, in no order: in runs, in lines, on the schedule, behind ordering keys. Bodies are not read.
create or replace function menzil._waiting_ids(p_channel_id integer) returns setof bigint
language sql stable set enable_seqscan = on set jit = off as $$
  select w.id
    from (select u.id from menzil.run r
            left join menzil.lane l on l.channel_id = r.channel_id and l.rank = r.rank and l.head_due = r.due_at and l.head_id = r.first_id and l.gone > 0
            cross join lateral unnest(case when r.ids is not null then r.ids[coalesce(l.gone, 0) + 1 :]
                                           else array(select generate_series(r.first_id + coalesce(l.gone, 0), r.first_id + r.n - 1)) end) u(id)
           where r.channel_id = p_channel_id
          union all
          select u.id from (select n.* from menzil.line n union all select a.* from menzil.aside a) n
            cross join lateral unnest(coalesce(n.ids, array(select generate_series(n.first_id, n.first_id + n.n - 1)))) u(id)
           where n.channel_id = p_channel_id and n.rank is not null and n.flags & 64 = 0
          union all select s.id from menzil.scheduled s where s.channel_id = p_channel_id
          union all select k.id from menzil.key_queue k where k.channel_id = p_channel_id and k.waits = 1) w
   where not exists (select 1 from menzil.withdrawn x where x.id = w.id)
$$;
