"""A publication of all tables, as tools for change data capture make it: then every row needs an identity."""

from __future__ import annotations

import psycopg

from tests.settings.day import prepare, work

_WITHOUT_IDENTITY = """
select c.oid::regclass::text from pg_class c
 where c.relnamespace in ('menzil'::regnamespace, 'menzil_lake'::regnamespace) and c.relkind in ('r', 'p')
   and c.relpersistence = 'p' and c.relreplident <> 'f'
   and not (c.relreplident = 'd' and exists (select 1 from pg_index i where i.indrelid = c.oid and i.indisprimary))
 order by 1
"""


def test_a_publication_of_all_tables_stops_nobody(db: str) -> None:
    prepare(db)
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("create publication everything for all tables")
        work(db, "published")
        conn.execute("select menzil.set_setting('archive_completed', 'off')")
        conn.execute("select menzil.channel_set('brief', p_max_size => 100)")
        for _ in range(3):
            conn.execute("select menzil.send('brief', '1')")
            conn.execute(
                "select menzil.message_complete(array_agg(m.id), array_agg(m.num_attempts))"
                " from menzil.message_dequeue(60000, 10, array['brief']) m"
            )
        (ended,) = conn.execute("select min(id) from menzil.archive").fetchone() or (None,)
        assert conn.execute("select menzil.message_erase(%s)", [ended]).fetchone() == (True,)
        # A month that has no partition: its messages lie in the default partition, and move when it is made.
        conn.execute("update menzil.message set created_at = created_at - interval '2 years' where id = %s", [ended])
        for (job,) in conn.execute("select name from menzil.jobs order by name").fetchall():
            conn.execute("select menzil.job_run(%s)", [job])
        conn.execute("select menzil._make_archive_month(menzil._month_of(now() - interval '2 years'))")
        conn.execute("select menzil.rebuild()")
        failed = conn.execute("select name, last_error from menzil.jobs where last_error is not null").fetchall()
        assert failed == []


def test_every_row_of_a_table_has_an_identity(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil._make_archive_month(menzil._month_of(now() + interval '2 years'))")
        assert conn.execute(_WITHOUT_IDENTITY).fetchall() == []
