"""What the doctor asks the catalog: how the server treats the tables of the queue. Nothing is changed."""

from __future__ import annotations

from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

_DEAD_ROWS = """
select s.relname::text, s.n_dead_tup, s.n_live_tup, greatest(s.last_vacuum, s.last_autovacuum)
  from pg_stat_user_tables s
 where s.schemaname = 'menzil' and s.n_dead_tup >= %s::bigint and s.n_dead_tup > s.n_live_tup
 order by s.n_dead_tup desc limit 10"""


def dead_rows(least: int) -> Op[list[Record]]:
    """Tables with more dead rows than live ones, and at least so many."""
    return Op(_DEAD_ROWS, (values.integer("number", least),), records("name dead live vacuumed_at:time"))


_INVALID = """
select i.relname::text, t.relname::text, t.relkind = 'p'
  from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
 where i.relnamespace = 'menzil'::regnamespace and not (x.indisvalid and x.indisready)
 order by 1"""


def invalid_indexes() -> Op[list[Record]]:
    """Indexes that an interrupted build left behind."""
    return Op(_INVALID, (), records("name table partitioned"))


_ENCODING = "select current_database()::text, current_setting('server_encoding')"


def encoding() -> Op[tuple[str, str]]:
    """Name the database and the encoding of its texts."""
    return Op(_ENCODING, (), lambda rows: (rows[0][0], rows[0][1]))


_VACUUMS = "select current_setting('autovacuum') = 'on' and current_setting('track_counts') = 'on'"


def vacuums_itself() -> Op[bool]:
    """Tell whether the server cleans up by itself."""
    return Op(_VACUUMS, (), op.boolean)


_PARAMETERS = """
select split_part(u.setting, '=', 1), d.datname::text, r.rolname::text
  from pg_db_role_setting s cross join unnest(s.setconfig) u(setting)
  left join pg_database d on d.oid = s.setdatabase left join pg_roles r on r.oid = s.setrole
 where u.setting like 'menzil.%%' and u.setting !~ '^menzil[.](actor|via)='
   and (s.setdatabase = 0 or d.datname = current_database())
 order by 1, 2, 3 limit %s::integer"""


def server_parameters(limit: int = 10) -> Op[list[Record]]:
    """Server parameters in the name of menzil that menzil does not read."""
    return Op(_PARAMETERS, (values.integer("limit", limit),), records("name database role"))
