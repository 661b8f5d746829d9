-- Which roles of menzil there are, and which of them lack their rights here: a dump that was restored with --no-acl brings none, and PUBLIC
-- may then call every function. Compared with how it was when the code was applied.
array(select r.rolname || case when has_schema_privilege(r.oid, s.oid, 'usage') and not s.is_bare then '' else ' (without rights)' end
        from pg_roles r
        left join lateral (select n.oid, exists (
                             select from pg_proc p cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                              where p.pronamespace = n.oid and a.grantee = 0) as is_bare
                             from pg_namespace n where n.nspname = 'menzil') s on true
       where r.rolname like E'menzil\\_%'
          and (not r.rolcanlogin or r.rolname in ('menzil_admin', 'menzil_application', 'menzil_worker', 'menzil_monitor', 'menzil_pipeline')) order by 1)
