-- Ends that the place does not cover, at most about p_limit messages; what ended before p_since is left out. cut: there are more.
-- Messages with ids above p_after, up to p_upto, are not counted as sent yet. Where many of them ended together, they are counted as
-- sent here, in one go: covered names their ids. STABLE: all queries see what the caller's statement sees.
create or replace function menzil._pulse_ends(
  p_place menzil.pulse_place, p_since timestamptz, p_after bigint, p_upto bigint, p_limit integer,
  out news menzil.pulse_news[], out place menzil.pulse_place, out covered int8multirange, out cut boolean
)
language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
  v_snapshot pg_snapshot := pg_current_snapshot();
  v_found record;
  v_starts timestamptz;   -- bounds of the months that have messages with these ids: the planner leaves out the others
  v_stops timestamptz;
begin
  perform 1 from menzil.message m where false;   -- the parent is locked before a partition of it, as _make_archive_month does it
  with new as materialized (
    select q.*, sum(q.n) over (order by q.ended_xid, q.lo_id rows unbounded preceding) as total from menzil._new_ends(p_place, v_snapshot, p_limit) q
  ), last as (select n.ended_xid, n.lo_id from new n where n.total >= p_limit order by n.ended_xid, n.lo_id limit 1)
  select count(*) as rows, min(n.lo_id) as first_id, max(n.hi_id) as last_id, (select l.ended_xid from last l) as xid, (select l.lo_id from last l) as id
    into v_found from new n;
  cut := v_found.xid is not null;
  place := menzil._next_place(p_place, v_snapshot, v_found.xid, v_found.id);
  if v_found.rows = 0 then
    return;
  end if;
  select min(a.month_start), max(a.month_start) + interval '1 month' into v_starts, v_stops
    from menzil.archive_month a where menzil._has_ids('archive_' || to_char(a.month_start, 'YYYY_MM'), v_found.first_id, v_found.last_id);
  if v_starts is null or menzil._has_ids('archive_default', v_found.first_id, v_found.last_id) then
    v_starts := '-infinity';
    v_stops := 'infinity';
  end if;
  -- Messages with ids in a row that end together are mostly of one channel and about as old: then the least and the greatest tell it of
  -- all. Of the others each message is looked at. A message belongs to counter 1 if it was created after the last of the bounds.
  with ended as materialized (
    select e.*, e.low = e.high and e.slowest = e.fastest as alike,
           e.low = e.high and e.sent_at = date_bin('1 min', e.newest, '2000-01-01 00:00:00+00') and e.messages >= 16
             and e.messages = e.hi_id - e.lo_id + 1 and e.lo_id > p_after and e.hi_id <= p_upto as covers
      from (select d.*, m.*, 12 - width_bucket(m.oldest, d.bounds) as slowest, 12 - width_bucket(m.newest, d.bounds) as fastest,
                   date_bin('1 min', m.oldest, '2000-01-01 00:00:00+00') as sent_at
              from (select d.lo_id, d.hi_id, d.ids, d.status, date_bin('1 min', d.ended_at, '2000-01-01 00:00:00+00') as at,
                           array[d.ended_at - interval '6 h', d.ended_at - interval '1 h', d.ended_at - interval '10 min', d.ended_at - interval '2 min',
                                 d.ended_at - interval '30 s', d.ended_at - interval '5 s', d.ended_at - interval '1 s', d.ended_at - interval '500 ms',
                                 d.ended_at - interval '100 ms', d.ended_at - interval '25 ms', d.ended_at - interval '5 ms'] as bounds
                      from menzil._new_ends(p_place, v_snapshot, p_limit) d
                     where (v_found.xid is null or (d.ended_xid, d.lo_id) <= (v_found.xid, v_found.id)) and d.ended_at >= p_since offset 0) d
              cross join lateral (
                select count(*) as messages, min(m.channel_id) as low, max(m.channel_id) as high, min(m.created_at) as oldest, max(m.created_at) as newest
                  from menzil.message m
                 where d.ids is null and m.id between d.lo_id and d.hi_id and m.created_at >= v_starts and m.created_at < v_stops offset 0) m offset 0) e
  )
  select (select array_agg(row(q.channel_id, q.at, q.status, q.bucket, q.n)::menzil.pulse_news)
            from (select e.low as channel_id, e.at, e.status, e.slowest as bucket, sum(e.messages) as n from ended e where e.alike group by 1, 2, 3, 4
                  union all
                  select e.low, e.sent_at, 'sent', null, sum(e.messages) from ended e where e.covers group by 1, 2
                  union all
                  select m.channel_id, e.at, e.status, 12 - width_bucket(m.created_at, e.bounds), count(*)
                    from ended e
                    cross join lateral (
                      select m.channel_id, m.created_at from menzil.message m
                       where e.ids is null and m.id between e.lo_id and e.hi_id and m.created_at >= v_starts and m.created_at < v_stops
                      union all
                      select m.channel_id, m.created_at from menzil.message m
                       where e.ids is not null and m.id = any (e.ids) and m.created_at >= v_starts and m.created_at < v_stops) m
                   where e.alike is not true group by 1, 2, 3, 4) q),
         (select range_agg(int8range(e.lo_id, e.hi_id, '[]')) from ended e where e.covers)
    into news, covered;
end $$;

-- Rows of done that a place does not cover and a snapshot shows, but for those of this transaction.
create or replace function menzil._new_ends(p_place menzil.pulse_place, p_snapshot pg_snapshot, p_limit integer) returns setof menzil.done
language sql stable as $$
  select d.* from unnest(p_place.late, p_place.late_ids) l(xid, id)
    cross join lateral (select d.* from menzil.done d where d.ended_xid = l.xid and d.lo_id > l.id order by d.lo_id limit p_limit) d
   where l.xid is distinct from pg_current_xact_id_if_assigned()
  union all
  (select d.* from menzil.done d
    where d.ended_xid >= p_place.counted_to and d.ended_xid < pg_snapshot_xmax(p_snapshot) and d.ended_xid is distinct from pg_current_xact_id_if_assigned()
    order by d.ended_xid, d.lo_id limit p_limit)
$$;
