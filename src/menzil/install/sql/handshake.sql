-- Where the version can be read, and whether this role may: asked of the catalog, so it cannot fail and abort the
-- caller's transaction.
select n.oid is not null and (f.oid is not null or c.oid is not null) as installed,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_function_privilege(f.oid, 'execute'), false) as may_call,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'), false) as may_read,
       current_user::text as who,
       current_database()::text as database
  from (values (1)) one
  left join pg_catalog.pg_namespace n on n.nspname = 'menzil'
  left join pg_catalog.pg_proc f on f.pronamespace = n.oid and f.proname = 'schema_version' and f.pronargs = 0
  left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = 'installed_code'
