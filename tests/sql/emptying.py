"""Puts a used database back to how the installer leaves it: no rows, registers at their start, the first partitions."""

from __future__ import annotations

import psycopg


_EMPTY = """
do $$
declare
  v_row record;
begin
  for v_row in
    select c.relname from pg_class c
     where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'r' and c.relispartition and c.relname ~ '^archive_[0-9]'
       and c.relname not in (select 'archive_' || to_char((date_trunc('month', now() at time zone 'UTC') + n * interval '1 month'), 'YYYY_MM')
                               from generate_series(0, 3) n)
  loop
    execute format('drop table menzil.%I', v_row.relname);
  end loop;
  delete from menzil.archive_month where to_regclass('menzil.archive_' || to_char(month_start at time zone 'UTC', 'YYYY_MM')) is null;
  for v_row in
    select c.relname from pg_class c
     where c.relnamespace = 'menzil'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname not in ('migration', 'installed_code', 'installed_object', 'archive_month')
     order by c.relname <> 'endpoint_secret' and c.relname <> 'schedule_slot'
  loop
    execute format('delete from menzil.%I', v_row.relname);
  end loop;
  insert into menzil.setting_value default values;
  for v_row in
    select q.seqrelid::regclass as name, q.seqstart from pg_sequence q join pg_class c on c.oid = q.seqrelid
     where c.relnamespace = 'menzil'::regnamespace
  loop
    perform setval(v_row.name, v_row.seqstart, false);
  end loop;
end $$
"""


def empty(conn: psycopg.Connection) -> None:
    conn.execute(_EMPTY)
