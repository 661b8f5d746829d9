-- Where the version can be read, and whether this role may: asked of the catalog, so it cannot fail and abort the
-- caller's transaction. Releases before 0.2 have schema_version and no schema_window.
select n.oid is not null and (f.oid is not null or c.oid is not null) as installed,
       coalesce(f.proname = 'schema_window', false) as has_window,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_function_privilege(f.oid, 'execute'), false) as may_call,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'), false) as may_read,
       current_user::text as who,
       current_database()::text as database
  from (values (1)) one
  left join pg_catalog.pg_namespace n on n.nspname = 'menzil'
  left join lateral (select f.oid, f.proname from pg_catalog.pg_proc f
                      where f.pronamespace = n.oid and f.proname in ('schema_window', 'schema_version') and f.pronargs = 0
                      order by f.proname desc limit 1) f on true
  left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = 'installed_code'
