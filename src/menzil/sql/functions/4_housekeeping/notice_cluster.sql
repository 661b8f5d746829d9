-- A dump that was restored speaks of transactions of another cluster. Consumers use neither its proofs nor its tallies: each names
-- the transaction that wrote it. This forgets them, and registers that speak of transaction ids: the next fold reads the whole
-- log, and live messages are counted. A register may be ahead of a snapshot by what is under way. Returns how many there were.
create or replace function menzil._notice_cluster() returns integer
language plpgsql as $$
declare
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000;
  v_count integer;
begin
  v_count := (select count(*) from menzil.look k where k.xmin <> all (k.late::xid[]))
           + (select count(*) from (select t.xmin, t.writer from menzil.tally t order by t.id desc limit 1) t where t.xmin <> all (t.writer))
           + (menzil._register('menzil.withdrawn_xid') > v_next)::integer;
  if v_count > 0 then
    delete from menzil.look;
    perform setval('menzil.withdrawn_xid', 0), setval('menzil.counted_xid', 0), setval('menzil.counted_ids', 0);
    perform menzil._tally(true);
  end if;
  -- After pg_upgrade: this is no copy, and the cluster has another identifier than the one that was written down.
  if menzil._system_identifier() <> (select h.system_identifier from menzil.home h) and not menzil._is_copy() then
    perform menzil._record_home();
    v_count := v_count + 1;
  end if;
  return v_count;
end $$;
