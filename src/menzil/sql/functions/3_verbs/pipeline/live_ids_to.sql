-- Ids of live messages up to p_id, as the view menzil.queue finds them, without their messages: one look at each place. Only
-- places that hold such an id are unfolded: most messages that wait are younger.
create or replace function menzil._live_ids_to(p_id bigint) returns table (id bigint)
language sql stable set jit = off as $$
  select u.id
    from (select case when l.gone is null and r.ids is not null then r.ids
                      when r.ids is not null then r.ids[l.gone + 1 :]
                      else array(select generate_series(r.first_id + coalesce(l.gone, 0), r.first_id + r.n - 1)) end as ids
            from menzil.run r
            left join menzil.lane l on l.channel_id = r.channel_id and l.rank = r.rank and l.head_due = r.due_at and l.head_id = r.first_id and l.gone > 0
           where case when r.ids is null then r.first_id <= p_id else p_id >= any (r.ids) end
          union all
          select coalesce(n.ids, array(select generate_series(n.first_id, n.first_id + n.n - 1)))
            from (select n.rank, n.flags, n.ids, n.first_id, n.n from menzil.line n union all select a.rank, a.flags, a.ids, a.first_id, a.n from menzil.aside a) n
           where n.rank is not null and n.flags & 64 = 0 and case when n.ids is null then n.first_id <= p_id else p_id >= any (n.ids) end
          union all select array[s.id] from menzil.scheduled s where s.id <= p_id
          union all select array[k.id] from menzil.key_queue k where k.id <= p_id and k.waits = 1
          union all select coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id))) from menzil.lease l where l.lo_id <= p_id) q
    cross join lateral unnest(q.ids) u(id)
   where u.id <= p_id and not exists (select 1 from menzil.withdrawn w where w.id = u.id)
$$;
