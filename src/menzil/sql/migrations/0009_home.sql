-- Where this database lives. A copy of the database carries this row along and finds out that it lives elsewhere: menzil._is_copy
-- compares. Written at install, and by menzil.adopt; an upgrade of menzil leaves it alone, so that a copy stays one.
-- No primary key: pg_repack rewrites tables that have one, and the row would have another xmin.
create table menzil.home (
  system_identifier  bigint,             -- of the cluster; null: the owner of the schema may not read it
  database_oid       oid not null,       -- 0: menzil.disown was called
  database_name      text not null,      -- as it was called then; only for people, a database may be renamed
  server_major       integer not null,
  writer             xid,                -- xmin of this row: another one after a dump was restored, the same after pg_upgrade
  recorded_at        timestamptz not null default clock_timestamp()
);
create unique index home_only_row on menzil.home ((true));
comment on table menzil.home is 'Where this database lives; written at install and by menzil.adopt.';

-- An empty place: it belongs to no database, so nothing is given out before the functions that follow have written down where this is.
insert into menzil.home (database_oid, database_name, server_major) values (0, '', 0);
