-- Where counting goes on. Without a cut, everything that the snapshot shows is counted: of transactions before its xmax only those that
-- are open are late, and so is the transaction of the caller, whose rows are not counted before it commits. With a cut, rows up to
-- (p_cut, p_cut_id) are counted, in the order of transactions.
create or replace function menzil._next_place(p_place menzil.pulse_place, p_snapshot pg_snapshot, p_cut xid8, p_cut_id bigint) returns menzil.pulse_place
language plpgsql stable as $$
declare
  v_own xid8 := pg_current_xact_id_if_assigned();
  v_to xid8 := case when p_cut is null then pg_snapshot_xmax(p_snapshot) else greatest(p_place.counted_to, ((p_cut::text::bigint + 1)::text)::xid8) end;
  v_late xid8[];
  v_ids bigint[];
begin
  select array_agg(q.xid order by q.xid), array_agg(q.id order by q.xid) into v_late, v_ids
    from (select l.xid, max(l.id) as id
            from (select x.xid, 0 as id from pg_snapshot_xip(p_snapshot) x(xid)
                  union all select v_own, 0
                  union all select l.xid, l.id from unnest(p_place.late, p_place.late_ids) l(xid, id)
                             where l.xid > p_cut or not pg_visible_in_snapshot(l.xid, p_snapshot) or l.xid = v_own
                  union all select p_cut, p_cut_id) l
           where l.xid < v_to group by l.xid) q;
  return row(v_to, coalesce(v_late, '{}'), coalesce(v_ids, '{}'))::menzil.pulse_place;
end $$;
