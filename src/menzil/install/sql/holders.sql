-- Who holds locks on our tables, oldest transaction first.
select format('pid %s (%s%s)', a.pid, a.usename, ', ' || nullif(a.state, 'active'))
  from pg_stat_activity a
 where a.pid <> pg_backend_pid()
   and exists (select from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
                where l.pid = a.pid and l.granted and n.nspname = 'menzil'
                  and l.database = (select d.oid from pg_database d where d.datname = current_database()))
 order by a.xact_start nulls last
 limit 3
