"""Puts a used database back to how the installer leaves it: no rows, registers at their start, the first partitions."""

from __future__ import annotations

import psycopg

_EMPTY = """
do $$
declare
  v_row record;
  v_now timestamp := date_trunc('month', now() at time zone 'UTC');
begin
  for v_row in
    select c.relname from pg_class c
     where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'r' and c.relname ~ '^archive_[0-9]'
       and c.relname not in (select to_char(v_now + n * interval '1 month', '"archive"_YYYY_MM')
                               from generate_series(0, 3) n)
  loop
    execute format('drop table menzil.%I', v_row.relname);
  end loop;
  for v_row in
    select c.relname from pg_class c where c.relnamespace = 'menzil'::regnamespace and c.relname ~ '^bulk_staging_'
       and c.relkind = 'r'
  loop
    execute format('drop table menzil.%I', v_row.relname);
  end loop;
  delete from menzil.archive_month
   where to_regclass(to_char(month_start at time zone 'UTC', '"menzil.archive"_YYYY_MM')) is null;
  for v_row in
    select c.relname from pg_class c
     where c.relnamespace = 'menzil'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       -- Written by the installer and by nobody else.
       and c.relname not in ('migration', 'installed_code', 'installed_object', 'archive_month', 'hot_function', 'job',
                             'home')
     order by c.relname not in ('endpoint_secret', 'schedule_slot', 'subscription')   -- these refer to others
  loop
    execute format('delete from menzil.%I', v_row.relname);
  end loop;
  update menzil.job set next_at = '-infinity', last_run_at = null, last_worker = null, last_count = null,
    last_error = null, state = null;
  insert into menzil.setting_value default values;
  for v_row in
    select q.seqrelid::regclass as name, q.seqstart from pg_sequence q join pg_class c on c.oid = q.seqrelid
     where c.relnamespace = 'menzil'::regnamespace
  loop
    perform setval(v_row.name, v_row.seqstart, false);
  end loop;
  perform menzil._begin_pulse();
  insert into menzil.lookup_state (written_to, told_from) values (0, 0);
end $$
"""


def empty(conn: psycopg.Connection) -> None:
    """Empty every table of the schema."""
    conn.execute(_EMPTY)
