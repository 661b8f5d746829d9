-- Takes back lines that were put aside: of these locked lanes and gates, and in a full look of any that can be locked by now.
create or replace function menzil._take_aside(p_full boolean, p_keys bigint[]) returns menzil.line[]
language plpgsql as $$
declare
  v_keys bigint[] := p_keys;
  v_rows menzil.line[];
begin
  if p_full then
    v_keys := v_keys || menzil._lock_lanes(array(
      -- From lane to lane in the index, without walking over the lines of one lane. Gates have rank null, which sorts last.
      with recursive k as (
        (select a.channel_id, a.rank from menzil.aside a order by a.channel_id, a.rank limit 1)
        union all
        select n.channel_id, n.rank from k cross join lateral (
          select q.channel_id, q.rank from (
            (select a.channel_id, a.rank from menzil.aside a where a.channel_id = k.channel_id and a.rank > k.rank order by a.channel_id, a.rank limit 1)
            union all (select a.channel_id, a.rank from menzil.aside a where a.channel_id = k.channel_id and k.rank is not null and a.rank is null limit 1)
            union all (select a.channel_id, a.rank from menzil.aside a where a.channel_id > k.channel_id order by a.channel_id, a.rank limit 1)) q limit 1) n)
      select k.channel_id::bigint * 16 + coalesce(k.rank, 15) from k
       where (k.channel_id::bigint * 16 + coalesce(k.rank, 15) = any (p_keys)) is not true order by random() limit 100));   -- at random: the same hundred may be held for long
  end if;
  with gone as (
    delete from menzil.aside a where a.ctid = any (array(
      select b.ctid from unnest(v_keys) k(key)
        cross join lateral (select b.ctid from menzil.aside b
                             where b.channel_id = (k.key >> 4)::integer and b.rank is not distinct from nullif(k.key & 15, 15)::smallint
                             order by b.xid limit 1000) b))
    returning a.*
  )
  select array_agg(row(g.*)::menzil.line order by g.xid) into v_rows from gone g;
  return v_rows;
end $$;
