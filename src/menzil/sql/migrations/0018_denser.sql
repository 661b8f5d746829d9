-- Denser pages. Settings of pages are for pages to come: nothing is rewritten, and the locks of settings stop neither senders nor consumers.

-- Null: all ids from lo_id to hi_id, as in menzil.done. Most batches have no gap. What is left of a lease after a settle of a part of it is
-- written out, because lo_id names the row and stays. Consumers wait for this lock until the migration commits; it comes first, because no
-- other lock of this file stops them.
alter table menzil.lease alter column ids drop not null;

-- Leases with gaps, of a hundred messages: seven to a page instead of six. One heartbeat fits beside them, and the row that it leaves behind
-- makes room for the next: all of them stay HOT. With 90 it would be eight to a page, and every third first heartbeat would write its indexes.
alter table menzil.lease set (fillfactor = 80);
-- Ids grow, so a page of the index that is left at its right end is hardly written again. What stays free is for senders that draw
-- their ids at the same time and insert them one after the other: with 98 or more, their pages are cut in half. A partitioned index has no
-- such setting; menzil._make_archive_month gives it to the index of a new month.
do $$
declare
  v_index regclass;
begin
  for v_index in select t.relid from pg_partition_tree('menzil.message_by_id') t where t.isleaf
  loop
    execute format('alter index %s set (fillfactor = 97)', v_index);
  end loop;
end $$;
