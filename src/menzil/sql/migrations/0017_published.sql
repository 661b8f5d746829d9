-- A publication FOR ALL TABLES, which tools for change data capture make by themselves, publishes updates and deletes of every table of
-- the database. PostgreSQL then refuses them (55000) in a table without a primary key or another replica identity: no dequeue could
-- delete a line of the log any more. So a table without a primary key is identified by the whole row. With wal_level = replica that
-- writes nothing; with logical the old row goes to the WAL with its update or delete. menzil._make_archive_month does the same for a new month.
-- The parent first, as senders lock it: they wait here for the moment that this takes.
lock table menzil.message in access exclusive mode;
alter table menzil.line replica identity full;
alter table menzil.lane replica identity full;
alter table menzil.done replica identity full;
alter table menzil.aside replica identity full;
alter table menzil.size_change replica identity full;
alter table menzil.rank_used replica identity full;
alter table menzil.home replica identity full;
alter table menzil.pulse_state replica identity full;
alter table menzil.pulse_tally replica identity full;
alter table menzil.correlated replica identity full;
alter table menzil.lineage replica identity full;
-- Partitions do not inherit it.
do $$
declare
  v_part regclass;
begin
  for v_part in select t.relid from pg_partition_tree('menzil.message') t
  loop
    execute format('alter table %s replica identity full', v_part);
  end loop;
end $$;
