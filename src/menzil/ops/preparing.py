"""Whether statements are prepared: shared by the connections of one client or worker.

A pooler in transaction mode hands each transaction to any of its server connections. PgBouncer before 1.21 does not
take prepared statements along: the server says that a statement does not exist (26000) or exists already (42P05),
before it runs anything. Then nothing is prepared any more, and the call is made again.

Names of statements differ between connections. Otherwise such a pooler could run the statement of another session under
the same name, with our values, and report no error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import psycopg

from menzil.model.said import Said
from menzil.ops.direct import prepare_no_more

Conn = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

#: The server does not know a statement, or knows another one of that name.
LOST = (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement)
#: The function of the server that refuses a statement whose answer has other columns than when it was prepared.
_LOOKS_AT_PLANS = "RevalidateCachedQuery"
#: asyncpg and SQLAlchemy say it in a class of their own, without the words of the server.
_OUTDATED = "InvalidCachedStatementError"

TOLD = (
    "The server lost a prepared statement; from now on none is prepared. Is there a PgBouncer before 1.21 in between?"
)


def outdated(error: BaseException) -> bool:
    """Tell whether a statement was prepared before a table or function in it changed (0A000), in any driver."""
    if type(error).__name__ == _OUTDATED:
        return True
    said = Said.by(error)
    return said.sqlstate == "0A000" and said.function == _LOOKS_AT_PLANS


class Preparing:
    """On until a pooler loses statements; then off for good, and told once."""

    def __init__(self, on: bool, tell: Callable[[str], None]) -> None:
        self.on = on
        self._tell = tell

    def fit(self, conn: Conn) -> None:
        """Make a connection that was just opened, or was lent before, prepare statements as the others do."""
        if conn.prepare_threshold is None:
            return
        # psycopg numbers statements from 0 on every connection and has no public way to begin elsewhere.
        numbers: Any = getattr(conn, "_prepared", None)
        if self.on and hasattr(numbers, "_prepared_idx"):
            if numbers._prepared_idx == 0:
                numbers._prepared_idx = int.from_bytes(os.urandom(8)) >> 4
        else:
            conn.prepare_threshold = None

    def gave_up(self, conn: Conn, error: psycopg.Error) -> bool:
        """Tell whether a statement was refused for how it was prepared, so that the call can be made again.

        It is then not prepared on this connection. If it was lost, it is not prepared on any other either.
        """
        if conn.prepare_threshold is None or not (isinstance(error, LOST) or outdated(error)):
            return False
        if isinstance(error, LOST) and self.on:
            self.on = False
            self._tell(TOLD)
        conn.prepare_threshold = None
        if isinstance(conn, psycopg.Connection):
            prepare_no_more(conn)
        return True
