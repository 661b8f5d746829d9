-- What has become of the messages of one part: completed, dead, expired, cancelled; in_flight, retrying, waiting. With the setting
-- archive_completed off a completed message is removed: one that is gone has completed.
create or replace function menzil._part_outcome(p_part menzil.plan_part) returns table (status text, messages bigint)
language plpgsql stable set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  v_ids bigint[] := coalesce(p_part.ids, array(select generate_series(p_part.lo_id, p_part.hi_id)));
begin
  return query
    with ended as materialized (
      select e.id, e.status from menzil._ends_among(v_ids) e
    ), flying as materialized (
      select i.id from menzil.lease l cross join lateral unnest(l.ids) i(id) where l.lo_id <= p_part.hi_id and l.hi_id >= p_part.lo_id
    )
    select case e.status when 'failed' then 'dead' else e.status end, count(*) from ended e group by 1
    union all
    select case when (u.id in (select f.id from flying f)) is true then 'in_flight' when m.id is null then 'completed' when r.id is not null then 'retrying' else 'waiting' end, count(*)
      from unnest(v_ids) u(id)
      left join lateral (select m.id from menzil.message m where m.id = u.id limit 1 offset 0) m on true
      left join lateral (select r.id from menzil.returned r where r.id = u.id and r.attempts > 0 offset 0) r on true
     where (u.id in (select e.id from ended e)) is not true group by 1;
end $$;
