"""The database that races take turns on.

Its sessions stay open, because the first calls of a new session take longer than most races last. Between two races
every row goes, and every session forgets its settings and plans, as behind a pooler. A race that changed a function or
put a trigger on a table has spoilt the database: the next race gets a new clone.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Any

import psycopg

from menzil.embedded import Embedded
from tests.conftest import database
from tests.sql.emptying import empty

_numbers = itertools.count(1)

# Every definition that a race may have changed. Months and staging tables come and go, `empty` takes care of them.
_DEFINITIONS = """
select array(select (oid, xmin)::text from pg_proc
              where pronamespace in ('menzil'::regnamespace, 'public'::regnamespace) order by oid),
       array(select oid from pg_trigger where not tgisinternal and tgparentid = 0 order by oid),
       array(select oid from pg_class where relnamespace = 'public'::regnamespace order by oid),
       array(select (name, month)::text from menzil.hot_function order by name),
       array(select (setdatabase, setrole, setconfig)::text from pg_db_role_setting order by 1)"""
# Like `discard all`, but psycopg does not hear of that and would go on using the statements that it prepared. A session
# reports what it counted some seconds later, unless it is asked to do so now.
_FORGET = """
reset session authorization; reset all; unlisten *; close all; discard plans; discard sequences; discard temp;
select pg_advisory_unlock_all(), pg_stat_force_next_flush()"""
_DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
_LEFT = "select count(*) from pg_stat_activity where pid = any(%s)"


class Ground:
    """Clones a database when it needs one; lends sessions and takes them back."""

    def __init__(self, server: Embedded, template: str) -> None:
        self._server, self._template = server, template
        self._stack = ExitStack()
        self._idle: list[psycopg.Connection] = []
        self._gone: list[int] = []
        self._dsn: str | None = None

    def ready(self) -> str:
        """The DSN of an empty queue."""
        if self._dsn is None:
            self._dsn = self._stack.enter_context(database(self._server, f"races_{next(_numbers)}", self._template))
            self._own = psycopg.connect(self._dsn, autocommit=True)
            self._definitions = self._ask(_DEFINITIONS)
        else:
            empty(self._own)
        (self._deadlocks,) = self._ask(_DEADLOCKS)
        return self._dsn

    def lend(self, new: bool = False) -> psycopg.Connection:
        """A session that others may have used before, unless it must be new."""
        assert self._dsn is not None
        return psycopg.connect(self._dsn, autocommit=True) if new or not self._idle else self._idle.pop()

    def take_back(self, conn: psycopg.Connection, pid: int) -> None:
        """The session, with or without a transaction in it; one that was closed or killed is not lent again."""
        try:
            conn.rollback()
            conn.execute(_FORGET)
            self._idle.append(conn)
        except psycopg.OperationalError:
            self._gone.append(pid)
            conn.close()

    def deadlocks(self) -> int:
        """How many there were since the ground was ready; no session is lent any more."""
        while self._gone and self._ask(_LEFT, self._gone) != (
            0,
        ):  # a closed session tells what it counted when it goes
            pass
        self._gone.clear()
        self._own.execute("select pg_stat_clear_snapshot()")
        return self._ask(_DEADLOCKS)[0] - self._deadlocks

    def tidy(self) -> None:
        """Throw the database away if its definitions are not those of the template."""
        if self._ask(_DEFINITIONS) != self._definitions:
            self.close()

    def close(self) -> None:
        for conn in [*self._idle, *([self._own] if self._dsn else [])]:
            conn.close()
        self._idle.clear()
        self._gone.clear()
        self._dsn = None
        self._stack.close()

    def _ask(self, query: str, *values: object) -> tuple[Any, ...]:
        row = self._own.execute(query, values or None).fetchone()
        assert row is not None
        return row
