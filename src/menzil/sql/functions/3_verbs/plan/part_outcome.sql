-- What has become of the messages of one part: completed, dead, expired, cancelled; in_flight, retrying, waiting. With the setting
-- archive_completed off a completed message is removed: one that is gone has completed.
create or replace function menzil._part_outcome(p_part menzil.plan_part) returns table (status text, messages bigint)
language plpgsql stable set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  v_ids bigint[];
begin
  -- A part spans 4096 ids at most, and its messages lie side by side: ranges are read, not one row for each id.
  if p_part.ids is null and p_part.n = (select count(*) from menzil.message m where m.id between p_part.lo_id and p_part.hi_id) then
    return query
      with ended as materialized (
        select d.status, d.lo_id, d.hi_id, d.ids from menzil.done d where d.lo_id > p_part.lo_id - 4096 and d.lo_id <= p_part.hi_id and d.hi_id >= p_part.lo_id
      ), flying as materialized (
        select i.id from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) i(id)
         where l.lo_id <= p_part.hi_id and l.hi_id >= p_part.lo_id and i.id between p_part.lo_id and p_part.hi_id
      ), told as (
        select case e.status when 'failed' then 'dead' else e.status end as status,
               sum(case when e.ids is null then least(e.hi_id, p_part.hi_id) - greatest(e.lo_id, p_part.lo_id) + 1
                        else (select count(*) from unnest(e.ids) i(id) where i.id between p_part.lo_id and p_part.hi_id) end)::bigint as messages
          from ended e group by 1
        union all select 'in_flight', count(*) from flying f
        union all
        select 'retrying', count(*) from menzil.returned r
         where r.id between p_part.lo_id and p_part.hi_id and r.attempts > 0 and (r.id in (select f.id from flying f)) is not true
           and (r.id in (select i.id from ended e cross join lateral unnest(coalesce(e.ids, array(select generate_series(e.lo_id, e.hi_id)))) i(id))) is not true
      )
      select t.status, t.messages from told t where t.messages > 0
      union all
      select 'waiting', p_part.n - s.messages from (select sum(t.messages)::bigint as messages from told t) s where p_part.n > s.messages;
    return;
  end if;
  v_ids := coalesce(p_part.ids, array(select generate_series(p_part.lo_id, p_part.hi_id)));
  return query
    with ended as materialized (
      select e.id, e.status from menzil._ends_among(v_ids) e
    ), flying as materialized (
      select i.id from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) i(id) where l.lo_id <= p_part.hi_id and l.hi_id >= p_part.lo_id
    )
    select case e.status when 'failed' then 'dead' else e.status end, count(*) from ended e group by 1
    union all
    select case when (u.id in (select f.id from flying f)) is true then 'in_flight'
                when (u.id in (select m.id from menzil.message m where m.id between p_part.lo_id and p_part.hi_id)) is not true then 'completed'
                when (u.id in (select r.id from menzil.returned r where r.id between p_part.lo_id and p_part.hi_id and r.attempts > 0)) is true then 'retrying'
                else 'waiting' end, count(*)
      from unnest(v_ids) u(id)
     where (u.id in (select e.id from ended e)) is not true group by 1;
end $$;
