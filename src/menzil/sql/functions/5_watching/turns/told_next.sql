-- What the next dequeue will put into lanes before it visits them: lines of the log, scheduled messages that are due, messages whose
-- lease ran out, and the next messages of ordering keys that need one; and cancelled messages that it takes out. As lines of a lane; of each kind at most as many as a dequeue
-- takes. Reads only.
create or replace function menzil._told_next(p_now timestamptz) returns setof menzil.line
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  with told as materialized (
    select n.* from menzil._lines_ahead(2000) n
  ), due as materialized (
    select s.* from menzil.scheduled s where s.due_at <= p_now order by s.due_at, s.id limit 500
  ), lost as materialized (
    select u.id, m.channel_id, m.rank, m.ordering_key, coalesce(r.place_at, m.first_due) as place_at, l.flags, l.lo_id, l.attempt,
           coalesce(r.retry_count, 0) >= coalesce((c.retry_policy ->> 'max_retries')::integer, s.default_max_retries) as dies,
           c.on_dead = 'block' as blocks
      from (select l.ids, l.lo_id, l.hi_id, l.flags, l.attempt, l.unlock_at from menzil.lease l where l.watch_at <= p_now order by l.watch_at limit 100) l
      cross join lateral unnest(coalesce(l.ids[: 1000], array(select generate_series(l.lo_id, least(l.hi_id, l.lo_id + 999))))) u(id)
      cross join lateral (select m.channel_id, (10 - m.priority)::smallint as rank, m.ordering_key, coalesce(m.scheduled_at, m.created_at) as first_due
                            from menzil.message m where m.id = u.id offset 0) m
      cross join lateral (select c.retry_policy, c.on_dead from menzil.channel c where c.id = m.channel_id offset 0) c
      left join lateral (select r.place_at, r.retry_count from menzil.returned r where r.id = u.id offset 0) r on true
      cross join menzil.setting_value s
     where l.unlock_at <= p_now limit 1000
  ), key as materialized (   -- free: a message that holds the key and dies
    select t.channel_id, t.ordering_key, null::bigint as free from told t where t.ordering_key is not null
    union select d.channel_id, d.ordering_key, null from due d where d.ordering_key is not null and not d.holds_key
    union select l.channel_id, l.ordering_key, l.id from lost l where l.dies and l.ordering_key is not null and not l.blocks
  ), head as materialized (
    select distinct h.id from key k
      cross join lateral (
        select q.waits, q.id
          from (select q.waits, q.id from menzil.key_queue q
                 where q.channel_id = k.channel_id and q.ordering_key = k.ordering_key and q.id is distinct from k.free order by q.waits, q.id limit 1) q
        union all
        select 1, min(d.id) from due d where d.channel_id = k.channel_id and d.ordering_key = k.ordering_key and not d.holds_key having min(d.id) is not null
        order by 1, 2 limit 1) h
     where h.waits = 1
  )
  select (row(null, q.channel_id, q.rank, q.due_at, q.first_id, q.n, q.flags, q.ids, null, null, null, null, null, null, null)::menzil.line).*
    from (select t.channel_id, t.rank, t.due_at, t.first_id, t.n, t.flags, t.ids from told t where t.rank is not null
          union all
          select d.channel_id, d.rank, d.place_at, min(d.id), count(*)::integer, bit_or(d.flags), array_agg(d.id order by d.id)
            from due d where d.ordering_key is null or d.holds_key group by 1, 2, 3
          union all
          select l.channel_id, l.rank, l.place_at, min(l.id), count(*)::integer, bit_or(l.flags), array_agg(l.id order by l.id)
            from lost l where not l.dies group by 1, 2, 3, l.lo_id, l.attempt
          union all
          select m.channel_id, (10 - m.priority)::smallint, coalesce(r.place_at, m.scheduled_at, m.created_at), h.id, 1, 4::smallint, null
            from head h cross join lateral (select m.channel_id, m.priority, m.scheduled_at, m.created_at from menzil.message m where m.id = h.id offset 0) m
            left join lateral (select r.place_at from menzil.returned r where r.id = h.id offset 0) r on true) q
$$;
