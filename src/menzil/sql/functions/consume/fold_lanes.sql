-- Wakes the lanes of these new places, under their locks; places of lanes that somebody else holds go back into the log.
create or replace function menzil._fold_lanes(
  p_now timestamptz, p_channel integer[], p_rank smallint[], p_due timestamptz[], p_id bigint[], p_span boolean[]
) returns void
language plpgsql as $$
declare
  v_lanes tid[];
begin
  -- A lane is born under its gate's lock, so that a limit set meanwhile is not missed.
  insert into menzil.lane (channel_id, rank, gated, push, name)
    select u.channel_id, u.rank, g.gated or c.push, c.push, c.name
      from (select distinct n.channel_id, n.rank from unnest(p_channel, p_rank) n(channel_id, rank)
             where (select 1 from menzil.lane l where l.channel_id = n.channel_id and l.rank = n.rank) is null) u
      cross join lateral (select g.paused or g.max_concurrency is not null or g.release_interval_ms > 0 as gated from menzil.gate g
                           where g.channel_id = u.channel_id for update skip locked offset 0) g
      cross join lateral (select c.name, c.protocol is not null as push from menzil.channel c where c.id = u.channel_id offset 0) c
    on conflict do nothing;
  -- One entry per lane, sorted; (0,0) is no place, it stands for a lane that somebody else holds.
  v_lanes := array(select coalesce(l.at, '(0,0)')
                     from (select distinct n.channel_id, n.rank from unnest(p_channel, p_rank) n(channel_id, rank)) q
                     left join lateral (select l.ctid as at from menzil.lane l where l.channel_id = q.channel_id and l.rank = q.rank
                                           for update skip locked offset 0) l on true
                    order by q.channel_id, q.rank);

  with lane as materialized (
    -- The n-th group of places belongs to the n-th lane.
    select p.*, nullif(v_lanes[p.n], '(0,0)') as at
      from (select u.channel_id, u.rank, array_agg(u.due_at) as dues, array_agg(u.id) as ids, array_agg(u.span) as spans,
                   row_number() over (order by u.channel_id, u.rank) as n
              from unnest(p_channel, p_rank, p_due, p_id, p_span) u(channel_id, rank, due_at, id, span) group by u.channel_id, u.rank) p
  ), put_back as (
    insert into menzil.arrival (generation, channel_ids, ranks, due_ats, ids, spans)
      select menzil._generation(p_now), array_agg(i.channel_id), array_agg(i.rank), array_agg(u.due_at), array_agg(u.id), array_agg(u.span)
        from lane i cross join unnest(i.dues, i.ids, i.spans) u(due_at, id, span) where i.at is null
      having count(*) > 0
  ), news as materialized (
    -- The scan start moves back for a batch below it, which lies there in one piece, and when there are too many
    -- single places below it to fetch them one by one.
    select i.at, n.first_due, n.early_due, n.early_id, n.span_due is not null or cardinality(n.early_id) > 100 as back,
           least(l.low_due, n.span_due, case when cardinality(n.early_id) > 100 then n.early_least end) as low_due, l.low_id
      from lane i
      cross join lateral (select l.low_due, l.low_id, l.early_due, l.early_id from menzil.lane l where l.ctid = i.at offset 0) l
      cross join lateral (
        select min(p.due_at) filter (where not p.early) as first_due,
               min(p.due_at) filter (where p.early and p.span) as span_due,
               least(min(p.due_at) filter (where p.early), (select min(e.due_at) from unnest(l.early_due) e(due_at))) as early_least,
               array_agg(p.due_at) filter (where p.early) || l.early_due as early_due,
               array_agg(p.id) filter (where p.early) || l.early_id as early_id
          from (select q.due_at, q.id, q.span, (q.due_at, q.id) < (l.low_due, l.low_id) as early
                  from unnest(i.dues, i.ids, i.spans) q(due_at, id, span)) p) n
     where i.at is not null
  ), sorted as materialized (
    select n.at, n.first_due, n.back, n.low_due, case when n.back then 0 else n.low_id end as low_id, e.early_due, e.early_id
      from news n cross join lateral (
        select coalesce(array_agg(q.due_at order by q.due_at, q.id), '{}') as early_due, coalesce(array_agg(q.id order by q.due_at, q.id), '{}') as early_id
          from (select distinct u.due_at, u.id from unnest(n.early_due, n.early_id) u(due_at, id)
                 where not n.back or (u.due_at, u.id) < (n.low_due, 0)) q) e
  )
  update menzil.lane l set
      phase = 1,
      head_due = least(l.head_due, s.first_due, case when s.back then s.low_due end),
      head_id = case when s.first_due <= l.head_due or s.back then 0 else l.head_id end,
      low_due = s.low_due,
      low_id = s.low_id,
      early_due = s.early_due,
      early_id = s.early_id,
      next_at = case when l.phase = 1 then l.next_at else p_now end   -- an active lane keeps its turn, or stays held by its gate
    from sorted s where l.ctid = s.at;
end $$;
