"""Default privileges that the owner gave to others reach every table it makes; what is private in menzil stays so."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from menzil.install import migrate

_OPEN = """
select format('%%s %%s', c.relkind, c.oid::regclass) from pg_class c cross join lateral aclexplode(c.relacl) a
 where c.relnamespace = 'menzil'::regnamespace and a.grantee = any (%(who)s::oid[])
   and (c.relkind in ('r', 'p', 'S') or a.grantee = 0)
union
select p.oid::regprocedure::text from pg_proc p cross join lateral aclexplode(p.proacl) a
 where p.pronamespace = 'menzil'::regnamespace and a.grantee = any (%(who)s::oid[])
   and (p.proname like E'\\\\_%%' or a.grantee = 0)
"""


@pytest.fixture
def reader(fresh_db: str) -> Iterator[str]:
    """A role that the owner gives rights on everything it makes from now on."""
    name = f"reader_{uuid4().hex[:8]}"
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        conn.execute(f"create role {name}")
        for what in ("all on tables", "all on sequences", "execute on functions"):
            for who in (name, "public"):
                conn.execute(sql.SQL(f"alter default privileges grant {what} to {who}"))
        yield name
        conn.execute(f"drop owned by {name}")
        conn.execute(f"drop role {name}")


def test_what_is_private_stays_so_where_the_owner_has_default_privileges(fresh_db: str, reader: str) -> None:
    told = migrate(fresh_db).notices
    assert any(f"taken back from: public, {reader}" in notice for notice in told), told
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        conn.execute("select menzil._make_archive_month(menzil._month_of(now() + interval '2 years'))")
        conn.execute("select menzil.bulk_open('many')")
        (role,) = conn.execute("select oid from pg_roles where rolname = %s", [reader]).fetchone() or (None,)
        assert conn.execute(_OPEN, {"who": [0, role]}).fetchall() == []
        conn.execute("select menzil.channel_set('work')")
        conn.execute("select menzil.send('work', '1')")
        conn.execute(f"grant menzil_application to {reader}")
        conn.execute(f"set role {reader}")
        for private in ("select payload from menzil.message", "select setval('menzil.message_id', 1)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(private.encode())
        assert conn.execute("select menzil.send('work', '1')").fetchone() == (2,)
    assert migrate(fresh_db, reapply=True).notices == []
