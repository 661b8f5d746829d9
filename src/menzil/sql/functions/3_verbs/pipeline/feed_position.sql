-- Up to where a feed is complete: rows of transactions before `xid` are all there or never come. `last_drop` is the
-- number of the latest clean-up. `foreign_rows` tells that the rows were written by another server, whose transaction
-- ids mean nothing here: a database restored from a dump.
create or replace function menzil.feed_position(p_feed text) returns table (xid text, last_drop bigint, foreign_rows boolean)
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_snapshot pg_snapshot;
  v_last xid8;
begin
  perform menzil._check_feed(p_feed);
  if p_feed = 'archive' then
    v_last := (select d.ended_xid from menzil.done d order by d.ended_xid desc limit 1);
  else
    v_last := (select e.xid from menzil.event e order by e.xid desc, e.id desc limit 1);
  end if;
  v_snapshot := pg_current_snapshot();   -- after the look at the last row: a row that was visible is below its xmax
  -- Writes the log of the server out, up to what has been committed by now; after the snapshot, so that all that it calls
  -- complete is written. Workers settle without waiting for that, so a crash may undo an end that other sessions have seen; a
  -- reader of the feed must not have been given it by then. A standby knows only what is written.
  if pg_is_in_recovery() or pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() then
    null;   -- nothing to write
  elsif current_setting('server_version_num')::integer >= 170000 then
    perform pg_logical_emit_message(false, 'menzil', '', true);
  else
    perform set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off';
    perform pg_logical_emit_message(true, 'menzil', '');   -- written out when the transaction of the call commits
  end if;
  return query
    select pg_snapshot_xmin(v_snapshot)::text, coalesce((select max(d.id) from menzil.feed_drop d where d.feed = p_feed), 0),
           coalesce(v_last >= pg_snapshot_xmax(v_snapshot) and v_last is distinct from pg_current_xact_id_if_assigned(), false);
end $$;
