-- Which of these messages have ended, and how. Ids are looked up by blocks of 4096: no row of done spans more, so one short look
-- at done answers for a whole block.
create or replace function menzil._ends_among(p_ids bigint[]) returns table (id bigint, status text)
language plpgsql stable set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  return query
    select e.id, d.status
      from (select distinct u.id >> 12 as block from unnest(p_ids) u(id)) b
      cross join lateral (select d.status, d.lo_id, d.hi_id, d.ids from menzil.done d
                           where d.lo_id > (b.block << 12) - 4096 and d.lo_id < (b.block + 1) << 12 and d.hi_id >= b.block << 12 offset 0) d
      cross join lateral unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) e(id)
     where e.id >> 12 = b.block and (e.id in (select u.id from unnest(p_ids) u(id))) is true;
end $$;
