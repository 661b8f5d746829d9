"""Looks at how the archive is built: its months, and whether their rows are where they belong. Nothing is changed."""

from __future__ import annotations

from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

# Bounds are read back in the session's own time zone, so that text and cast agree in every zone. Tables that look like
# a month but are attached to no table are listed too.
_PARTITIONS = """
select c.relname::text, i.inhrelid is not null and not coalesce(i.inhdetachpending, false),
       (regexp_match(b.text, $$FROM \\('([^']+)'\\)$$))[1]::timestamptz,
       (regexp_match(b.text, $$TO \\('([^']+)'\\)$$))[1]::timestamptz,
       (to_date(substr(c.relname, 9), 'YYYY_MM')::timestamp at time zone 'UTC'), greatest(c.reltuples, 0)::bigint
  from pg_class c
  left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = 'menzil.message'::regclass
  cross join lateral (select coalesce(pg_get_expr(c.relpartbound, c.oid), '') as text) b
 where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'r' and c.relname ~ '^archive_[0-9]{4}_[0-9]{2}$'
 order by 1"""


def partitions() -> Op[list[Record]]:
    """Tables named like a month of the archive, with the bounds they have and the month they are named after."""
    return Op(_PARTITIONS, (), records("name attached starts_at:time ends_at:time month:time about_rows"))


_AHEAD = """
select coalesce(min(g.n), 121)::integer from generate_series(0, 120) g(n)
 where to_regclass('menzil.archive_' || to_char(
         date_trunc('month', clock_timestamp() at time zone 'UTC') + g.n * interval '1 month', 'YYYY_MM')) is null"""


def months_ahead() -> Op[int]:
    """How many months in a row, from this one on, have a partition already."""
    return Op(_AHEAD, (), op.integer)


_STRAYS = "select h.status = 'ok' from menzil.health_check() h where h.check_name = 'archive_default'"


def default_is_empty() -> Op[bool]:
    """Tell whether every message found the partition of its month."""
    return Op(_STRAYS, (), op.boolean)


_ROWS = "select r.name, r.rows, r.oldest, r.newest from menzil._month_rows r order by 1"


def rows_by_partition() -> Op[list[Record]]:
    """Every partition with its rows: reads the whole archive."""
    return Op(_ROWS, (), records("name rows oldest:time newest:time"))


_OLD = """
select c.relname::text, greatest(c.reltuples, 0)::bigint
  from pg_class c
 where c.oid in (select i.inhrelid from pg_inherits i where i.inhparent = 'menzil.message'::regclass)
   and c.relname ~ '^archive_[0-9]{4}_[0-9]{2}$'
   and c.relname < 'archive_' || to_char(date_trunc('month', clock_timestamp() at time zone 'UTC')
                                         - %s::integer * interval '1 month', 'YYYY_MM')
 order by 1"""


def old_months(kept: int) -> Op[list[Record]]:
    """What menzil.cleanup_old_archive_partitions would drop; rows as the last vacuum counted them."""
    return Op(_OLD, (values.integer("months", kept),), records("name about_rows"))
