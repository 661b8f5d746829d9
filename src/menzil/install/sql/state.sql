-- What is installed, asked of the catalog alone: this never fails, even for a role that may read no table.
select current_user::text as who,
       current_database()::text as database,
       current_setting('server_version_num')::integer / 10000 as server_major,
       current_setting('server_encoding') as encoding,
       n.oid is not null as has_schema,
       has_database_privilege(current_database(), 'create') as may_create,
       m.oid is not null and c.oid is not null as has_books,
       coalesce(has_schema_privilege(n.oid, 'usage') and has_table_privilege(m.oid, 'select')
                and has_table_privilege(c.oid, 'select'), false) as may_read,
       pg_get_userbyid(m.relowner)::text as owner,
       obj_description(m.oid, 'pg_class') as note,
       {roles} as roles
  from (values (1)) one
  left join pg_namespace n on n.nspname = 'menzil'
  left join pg_class m on m.relnamespace = n.oid and m.relname = 'migration'
  left join pg_class c on c.relnamespace = n.oid and c.relname = 'installed_code'
