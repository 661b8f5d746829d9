-- Lines that no dequeue has folded yet, in the order a dequeue reads them: at most p_limit of the log, from the newest proof on,
-- and at most p_limit that were put aside. Reads only.
create or replace function menzil._lines_ahead(p_limit integer) returns setof menzil.line
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_from xid8;
  v_late xid8[];
begin
  select k.folded_to, k.late into v_from, v_late from (select k.*, k.xmin from menzil.look k order by k.id desc limit 1) k where k.xmin = any (k.late::xid[]);
  if v_from is null or v_from > pg_snapshot_xmax(pg_current_snapshot()) then   -- no proof
    v_from := '0';
    v_late := '{}';
  end if;
  return query
    (select n.* from unnest(v_late) x(xid) cross join lateral (select n.* from menzil.line n where n.xid = x.xid and x.xid < v_from offset 0) n limit p_limit)
    union all
    (select n.* from menzil.line n where n.xid >= v_from order by n.xid limit p_limit)
    union all
    (select a.* from menzil.aside a order by a.channel_id, a.rank, a.xid limit p_limit);
end $$;
