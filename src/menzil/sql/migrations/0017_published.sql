-- A publication FOR ALL TABLES, which tools for change data capture make by themselves, publishes updates and deletes of every table of
-- the database. PostgreSQL then refuses them (55000) in a table without a primary key or another replica identity: no dequeue could
-- delete a line of the log any more. So a table without a primary key is identified by the whole row. With wal_level = replica that
-- writes nothing; with logical the old row goes to the WAL with its update or delete. menzil._make_archive_month does the same for a new month.
-- The parent first, as senders lock it: they wait here for the moment that this takes.
lock table menzil.message in access exclusive mode;
do $$
declare
  v_table regclass;
begin
  for v_table in
    select c.oid from pg_class c
     where c.relnamespace = 'menzil'::regnamespace and c.relkind in ('r', 'p') and c.relpersistence = 'p'
       and not exists (select 1 from pg_index i where i.indrelid = c.oid and i.indisprimary)
     order by c.oid
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end $$;
