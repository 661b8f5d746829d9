-- Wakes the lanes of these new places, under their locks; places of lanes that somebody else holds go back into the log.
create or replace function menzil._fold_lanes(
  p_now timestamptz, p_channel integer[], p_rank smallint[], p_due timestamptz[], p_id bigint[], p_span boolean[]
) returns void
language plpgsql as $$
declare
  v_at tid[];
  v_channel integer[];
  v_rank smallint[];
begin
  -- A lane is born under its gate's lock, so that a limit set meanwhile is not missed.
  insert into menzil.lane (channel_id, rank, gated)
    select u.channel_id, u.rank, g.gated
      from (select distinct n.channel_id, n.rank from unnest(p_channel, p_rank) n(channel_id, rank)) u
      cross join lateral (select g.paused or g.max_concurrency is not null or g.release_interval_ms > 0 as gated from menzil.gate g
                           where g.channel_id = u.channel_id
                             and not exists (select 1 from menzil.lane l where l.channel_id = u.channel_id and l.rank = u.rank)
                             for update skip locked offset 0) g
    on conflict do nothing;
  select array_agg(l.at), array_agg(l.channel_id), array_agg(l.rank) into v_at, v_channel, v_rank
    from (select distinct n.channel_id, n.rank from unnest(p_channel, p_rank) n(channel_id, rank)) u
    cross join lateral (select l.ctid as at, l.channel_id, l.rank from menzil.lane l
                         where l.channel_id = u.channel_id and l.rank = u.rank for update skip locked offset 0) l;

  with place as materialized (
    select u.channel_id, u.rank, u.due_at, u.id, u.span
      from unnest(p_channel, p_rank, p_due, p_id, p_span) u(channel_id, rank, due_at, id, span)
  ), mine as materialized (
    select l.at, l.channel_id, l.rank from unnest(v_at, v_channel, v_rank) l(at, channel_id, rank)
  ), put_back as (
    insert into menzil.arrival (generation, channel_ids, ranks, due_ats, ids, spans)
      select menzil._generation(p_now), array_agg(p.channel_id), array_agg(p.rank), array_agg(p.due_at), array_agg(p.id), array_agg(p.span)
        from place p where not exists (select 1 from mine m where m.channel_id = p.channel_id and m.rank = p.rank)
      having count(*) > 0
  ), news as materialized (
    -- The scan start moves back for a batch below it, which lies there in one piece, and when there are too many
    -- single places below it to fetch them one by one.
    select m.at, n.first_due, n.early_due, n.early_id, n.span_due is not null or cardinality(n.early_id) > 100 as back,
           least(l.low_due, n.span_due, case when cardinality(n.early_id) > 100 then n.early_least end) as low_due, l.low_id
      from mine m
      cross join lateral (select l.low_due, l.low_id, l.early_due, l.early_id from menzil.lane l where l.ctid = m.at offset 0) l
      cross join lateral (
        select min(p.due_at) filter (where not p.early) as first_due,
               min(p.due_at) filter (where p.early and p.span) as span_due,
               least(min(p.due_at) filter (where p.early), l.early_due[1]) as early_least,
               array_agg(p.due_at) filter (where p.early) || l.early_due as early_due,
               array_agg(p.id) filter (where p.early) || l.early_id as early_id
          from (select q.due_at, q.id, q.span, (q.due_at, q.id) < (l.low_due, l.low_id) as early
                  from place q where q.channel_id = m.channel_id and q.rank = m.rank) p) n
  ), sorted as materialized (
    select n.at, n.first_due, n.back, n.low_due, case when n.back then 0 else n.low_id end as low_id, e.early_due, e.early_id
      from news n cross join lateral (
        select coalesce(array_agg(q.due_at order by q.due_at, q.id), '{}') as early_due, coalesce(array_agg(q.id order by q.due_at, q.id), '{}') as early_id
          from (select distinct u.due_at, u.id from unnest(n.early_due, n.early_id) u(due_at, id)
                 where (u.due_at, u.id) < (n.low_due, case when n.back then 0 else n.low_id end)) q) e
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
