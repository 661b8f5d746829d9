-- Functions, procedures and views as they are now. Everything that changes behaviour is in the fingerprint; owners and grants
-- are not, because administrators may arrange those. The month is not: functions that have it in their text are made anew
-- when a month begins. made_now: this transaction made or replaced the function; its subtransactions have later numbers.
select case p.prokind when 'p' then 'procedure' else 'function' end as kind,
       p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' as name,
       md5(concat_ws('|', regexp_replace(regexp_replace(p.prosrc, E'menzil\\.archive_\\d{4}_\\d\\d', 'menzil.message', 'g'),
                                         E'''\\d{4}-\\d\\d-01 00:00:00\\+00''', '''month''', 'g'),
                     pg_get_function_sqlbody(p.oid), pg_get_function_arguments(p.oid),
                     pg_get_function_result(p.oid), l.lanname, p.prokind, p.prosecdef, p.provolatile,
                     p.proisstrict, p.proparallel, p.proleakproof, p.proconfig::text)) as fingerprint,
       age(p.xmin) <= 0 as made_now
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
 where n.nspname = 'menzil'
union all
select 'view', c.relname,
       md5(concat_ws('|', pg_get_viewdef(c.oid), c.reloptions::text)), false
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'menzil' and c.relkind in ('v', 'm')
