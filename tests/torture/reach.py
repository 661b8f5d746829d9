"""Connections to a database that comes and goes, and what its errors mean for a promise."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from tests.torture.history import Diary
from tests.torture.place import Me

Conn = psycopg.Connection[Any]

#: The engine says no and has written nothing.
REFUSALS = {"22004", "22023", "23505", "40001", "42704", "53400", "54000", "55000", "MZ001", "MZ002"}
#: What faults do to a statement, besides breaking connections: nothing worth a line of its own.
EXPECTED = {"57014", "57P01", "57P02", "57P03", "53100", "53300", "25P02", "08P01", "58000", "26000"}


class Over(Exception):  # noqa: N818 (it is none)
    """The run ends."""


def connect(me: Me) -> Conn:
    """Connect, however long it takes."""
    while not me.place.over:
        try:
            return psycopg.connect(
                me.dsn, autocommit=True, connect_timeout=3, prepare_threshold=None if me.pooled else 5
            )
        except psycopg.Error as error:
            note(me.diary, "connect", error)
            time.sleep(0.05)
    raise Over


def sqlstate(error: BaseException) -> str | None:
    """The code of an error, psycopg's or the client's."""
    return getattr(error, "sqlstate", None)


def note(diary: Diary, where: str, error: BaseException) -> None:
    """Write down an error that no fault explains."""
    code = sqlstate(error)
    if code not in REFUSALS | EXPECTED and not (code is None and isinstance(error, psycopg.OperationalError)):
        diary.note("error", where=where, text=str(error)[:500], sqlstate=code)
