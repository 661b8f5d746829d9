-- What waits in the lanes of all channels, or of one: how many, and since when the first of them could have been leased. Runs know how
-- many messages they hold, so a lane is counted by its runs: up to 10,001 of one channel. Of all channels 100 runs of each lane are
-- read, and then as many more as 100,000 runs in all allow, shared by the lanes that have more; beyond that a count is a lower bound.
create or replace function menzil._lanes_counted(p_channel_id integer, p_now timestamptz) returns table (
  channel_id integer, rank smallint, count bigint, since_at timestamptz
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_first constant integer := case when p_channel_id is null then 100 else 10001 end;
begin
  return query
    with first as materialized (
      select l as lane, l.channel_id, l.rank, q.runs, q.count, h.id
        from menzil.lane l
        cross join lateral (select count(*) as runs, sum(r.n - r.gone) as count from menzil._runs_ahead(l, v_first) r) q
        left join lateral (select r.ids[1] as id from menzil._runs_ahead(l, 1) r) h on true   -- ids are made for this run alone
       where l.tail_due is not null and (p_channel_id is null or l.channel_id = p_channel_id)
    ), room as materialized (
      select least(10001, 100 + greatest(0, 100000 - sum(f.runs)) / greatest(count(*) filter (where f.runs = v_first), 1))::integer as runs from first f
    ), folded as materialized (
      select f.channel_id, f.rank, coalesce(case when f.runs = v_first and p_channel_id is null and f.count < 10001
                                                 then (select sum(r.n - r.gone) from room o cross join lateral menzil._runs_ahead(f.lane, o.runs) r) end, f.count) as count,
             (select coalesce(greatest(t.place_at, t.due_at), m.scheduled_at, m.created_at)
                from menzil.message m left join menzil.returned t on t.id = m.id where m.id = f.id limit 1) as since_at
        from first f
    ), told as materialized (
      select n.channel_id, n.rank, sum(n.n) as count, min(greatest(n.due_at, t.due_at)) as since_at
        from menzil._lines_ahead(20000) n
        left join lateral (select t.due_at from menzil.returned t where n.flags & 1 <> 0 and t.id = n.first_id offset 0) t on true
       where n.rank is not null and n.flags & 64 = 0 and (p_channel_id is null or n.channel_id = p_channel_id) group by 1, 2
    )
    select q.channel_id, q.rank, sum(q.count)::bigint, min(q.since_at)
      from (select f.channel_id, f.rank, f.count, f.since_at from folded f where f.count > 0 union all select t.channel_id, t.rank, t.count, t.since_at from told t) q group by 1, 2;
end $$;
