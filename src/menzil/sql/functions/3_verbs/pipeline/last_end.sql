-- The last place in the feed of a message of this month, as a row of feed_drop; null: nothing of it ended. The ends around
-- the ids of the month are looked through from the newest, so usually the first belongs to the month.
create or replace function menzil._last_end(p_month timestamptz) returns menzil.feed_drop
language plpgsql stable set timezone = 'UTC' as $$
declare
  v_name text := 'archive_' || to_char(p_month, 'YYYY_MM');
  v_last menzil.feed_drop;
begin
  if to_regclass('menzil.' || v_name) is not null then
    execute format($sql$
      select d.ended_xid, m.id
        from (select d.ended_xid, d.lo_id, d.hi_id, d.ids from menzil.done d, (select min(m.id) as lo, max(m.id) as hi from menzil.%1$I m) s
               where d.lo_id > s.lo - 4096 and d.lo_id <= s.hi order by d.ended_xid desc, d.hi_id desc offset 0) d
        cross join lateral (select m.id from menzil.%1$I m where m.id between d.lo_id and d.hi_id and (d.ids is null or m.id = any (d.ids))
                             order by m.id desc limit 1) m
       limit 1$sql$, v_name) into v_last.xid, v_last.row_id;
  end if;
  return v_last;
end $$;
