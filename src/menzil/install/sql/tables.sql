-- The tables that clients work with. Months of messages are left out: exports and reports read them for minutes, and few
-- migrations change them. So are the installer's books, which every client reads when it connects.
select c.relname::text as name
  from pg_catalog.pg_class c
 where c.relnamespace = pg_catalog.to_regnamespace('menzil') and c.relkind = 'r' and not c.relispartition
   and c.relpersistence = 'p' and pg_catalog.pg_has_role(c.relowner, 'usage')
   and c.relname not in ('migration', 'installed_code', 'installed_object')
 order by c.oid
