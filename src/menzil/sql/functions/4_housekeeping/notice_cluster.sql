-- A dump that was restored speaks of transactions of another cluster. Consumers do not use its proofs: a proof names the
-- transaction that wrote it. This forgets proofs and registers that speak of transaction ids: the next fold reads the whole log. A
-- register may be ahead of a snapshot by what is under way. Returns how many proofs and registers there were.
create or replace function menzil._notice_cluster() returns integer
language plpgsql as $$
declare
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000;
  v_count integer;
begin
  v_count := (select count(*) from menzil.look k where k.xmin <> all (k.late::xid[]))
           + (menzil._register('menzil.withdrawn_xid') > v_next)::integer;
  if v_count > 0 then
    delete from menzil.look;
    perform setval('menzil.withdrawn_xid', 0), setval('menzil.counted_xid', 0), setval('menzil.counted_ids', 0);
    -- A dump reads registers later than tables: it says that more messages ended than did.
    perform setval('menzil.ended_count', greatest(0, least(menzil._register('menzil.ended_count'), menzil._register('menzil.message_id') - menzil._count_live())));
  end if;
  return v_count;
end $$;
