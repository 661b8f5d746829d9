"""Everything about schema menzil that two ways of installing it must agree on, as sorted lines."""

from __future__ import annotations

import psycopg

_DUMP = """
with n as (select oid, nspacl, nspowner from pg_namespace where nspname = 'menzil'),
     r as (select c.* from pg_class c join n on n.oid = c.relnamespace)
select format('schema owner=%s acl=%s', nspowner::regrole, nspacl) from n
union all
select format('relation %s kind=%s owner=%s acl=%s options=%s partition=%s comment=%s', relname, relkind,
              relowner::regrole, relacl, reloptions, pg_get_expr(relpartbound, oid), obj_description(oid, 'pg_class'))
  from r
union all
select format('column %s.%s %s %s notnull=%s default=%s identity=%s acl=%s', r.relname, attnum, attname,
              format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attidentity, attacl)
  from r join pg_attribute a on attrelid = r.oid and attnum > 0 and not attisdropped
  left join pg_attrdef on adrelid = attrelid and adnum = attnum
union all
select 'index ' || pg_get_indexdef(oid) from r where relkind in ('i', 'I')
union all
select format('view %s %s', relname, md5(pg_get_viewdef(oid))) from r where relkind = 'v'
union all
select format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(c.oid))
  from pg_constraint c join n on n.oid = connamespace
union all
select format('trigger %s', pg_get_triggerdef(t.oid)) from pg_trigger t join r on r.oid = tgrelid where not tgisinternal
union all
select format('function %s -> %s %s owner=%s acl=%s definer=%s volatile=%s strict=%s config=%s', p.oid::regprocedure,
              pg_get_function_result(p.oid), md5(concat(prosrc, pg_get_function_sqlbody(p.oid))), proowner::regrole,
              proacl, prosecdef, provolatile, proisstrict, proconfig)
  from pg_proc p join n on n.oid = pronamespace
union all
select format('sequence %s %s %s %s %s', seqrelid::regclass, seqstart, seqincrement, seqmin, seqmax)
  from pg_sequence join r on r.oid = seqrelid
union all
select format('migration %s %s %s', version, name, checksum) from menzil.migration
union all
select format('code %s %s %s %s %s', schema_version, checksum, package, server_major, roles) from menzil.installed_code
union all
select format('object %s %s %s', kind, name, fingerprint) from menzil.installed_object
"""


def dump(dsn: str) -> list[str]:
    """Return the lines, in an order that depends on nothing but their text."""
    with psycopg.connect(dsn) as conn:
        return sorted(line for (line,) in conn.execute(_DUMP))
