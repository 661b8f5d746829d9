-- What the partitions of message hold, for menzil archive verify: reads all of them.
create or replace view menzil._month_rows as
select c.relname::text as name, m.rows, m.oldest, m.newest
  from (select m.tableoid, count(*) as rows, min(m.created_at) as oldest, max(m.created_at) as newest from menzil.message m group by m.tableoid) m
  join pg_class c on c.oid = m.tableoid;
