-- All messages, the archive and the settings go with the schema, and so do objects of yours that depend on it.
drop schema if exists menzil cascade;
-- The catalog of the lake. Its files stay; `menzil lake register DIR` makes them known to another database.
drop schema if exists menzil_lake cascade;
-- Roles belong to the whole server and may serve other databases, so they stay. To see them, and to drop one by one:
--   select rolname from pg_roles where rolname like 'menzil\_%';
--   drop role menzil_...;
