-- Functions and views as they are now. Everything that changes behaviour is in the fingerprint; owners and grants are
-- not, because administrators may arrange those.
select 'function' as kind,
       p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' as name,
       md5(concat_ws('|', p.prosrc, pg_get_function_sqlbody(p.oid), pg_get_function_arguments(p.oid),
                     pg_get_function_result(p.oid), l.lanname, p.prokind, p.prosecdef, p.provolatile,
                     p.proisstrict, p.proparallel, p.proleakproof, p.proconfig::text)) as fingerprint
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
 where n.nspname = 'menzil'
union all
select 'view', c.relname,
       md5(concat_ws('|', pg_get_viewdef(c.oid), c.reloptions::text))
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'menzil' and c.relkind in ('v', 'm')
