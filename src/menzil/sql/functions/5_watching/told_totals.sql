-- Ids given out, messages ended, and ids that are gone (their messages ended, or their senders rolled back), as the newest tally and
-- the ends since then tell it. The register of ids is read as a row: pg_sequence_last_value, which sends use, takes a lock for writing.
create or replace function menzil._told_totals(out sent bigint, out ended bigint, out gone bigint)
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select case when m.is_called then m.last_value else 0 end, coalesce(t.ended, 0) + s.n, coalesce(t.gone + s.n, e.last_value)
    from menzil.message_id m cross join menzil.ended_count e
    left join (select t.ended, case when t.holds then t.gone end as gone, case when t.holds then t.counted_to end as counted_to, t.late
                 from (select t.*, t.xmin = any (t.writer) and t.counted_to <= pg_snapshot_xmax(pg_current_snapshot()) as holds from menzil.tally t order by t.id desc limit 1) t) t on true
    cross join lateral (
      -- Without ends that a restore brought: see menzil._tally.
      select (select coalesce(sum(d.n), 0) from menzil.done d where d.ended_xid >= t.counted_to and d.ended_xid < pg_snapshot_xmax(pg_current_snapshot())
                 and age(d.xmin) <= age(d.ended_xid::xid))
           + (select coalesce(sum(d.n), 0) from menzil.done d where d.ended_xid = any (t.late) and t.counted_to is not null
                 and age(d.xmin) <= age(d.ended_xid::xid)) as n) s
$$;
