-- Lanes that get their turn when the log is folded: idle or unborn ones that are told of messages, and lanes that their gate held and
-- whose gate changes. head_id holds the rank.
create or replace function menzil._lanes_told(p_told menzil.line[], p_now timestamptz) returns setof menzil.turn
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  with woken as materialized (
    select distinct q.channel_id
      from (select n.channel_id from menzil._lines_ahead(2000) n where n.rank is null and (n.freed is not null or n.news is not null)
            union all
            select l.channel_id from (select l.* from menzil.lease l where l.watch_at <= p_now order by l.watch_at limit 100) l
             cross join lateral (select g.circuit from menzil.gate g where g.channel_id = l.channel_id offset 0) g
             where l.unlock_at <= p_now and (l.epoch is not null or g.circuit = 1)) q
  )
  select null::tid, q.channel_id, c.name, null::timestamptz, q.rank::bigint, 0, coalesce(q.gated, c.gated)
    from (select t.channel_id, t.rank, l.gated
            from (select distinct t.channel_id, t.rank from unnest(p_told) t where t.flags & 64 = 0) t
            left join lateral (select l.gated, l.tail_due from menzil.lane l where l.channel_id = t.channel_id and l.rank = t.rank order by l.v desc limit 1) l on true
           where l.tail_due is null
          union all
          select w.channel_id, k.rank, l.gated
            from woken w cross join lateral (select k.rank from menzil.lane_name k where k.channel_id = w.channel_id offset 0) k
            cross join lateral (select l.gated, l.tail_due, l.next_at from menzil.lane l where l.channel_id = w.channel_id and l.rank = k.rank order by l.v desc limit 1) l
           where l.tail_due is not null and l.next_at is null) q
    cross join lateral (select c.name, menzil._is_gated(c) as gated from menzil.channel c where c.id = q.channel_id offset 0) c
   order by q.rank, q.channel_id
$$;
