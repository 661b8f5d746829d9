"""Where the database is, and how a worker connects to it: without session state, so that a pooler may stand between."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from menzil.model.errors import SchemaTooNewError, SchemaTooOldError, UsageError, translate
from menzil.model.version import SCHEMA_VERSION_KNOWN
from menzil.ops import upkeep
from menzil.ops.run import read_plainly, run_async

Conn = psycopg.AsyncConnection[Any]
SyncConn = psycopg.Connection[Any]

# A server that vanished without a word is noticed within a third of a short lease, not after minutes.
_ADDED = {
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


@dataclass(slots=True)
class Address:
    """A DSN and what is known of the server behind it."""

    dsn: str = field(repr=False)
    prepare: bool = True
    read_committed: bool = True  # whether a lone statement is; if not, each gets a transaction that is

    def options(self, purpose: str) -> dict[str, Any]:
        """Return what is added to the DSN; what the DSN says itself stays."""
        try:
            given = conninfo_to_dict(self.dsn)
        except psycopg.Error:
            # The original error repeats the DSN, and with it the password.
            hint = 'write it like "postgresql://user@host/database"'
            raise UsageError("The DSN is not a connection string PostgreSQL understands.", hint=hint) from None
        added = {**_ADDED, "fallback_application_name": f"menzil worker ({purpose})"}
        return {name: value for name, value in added.items() if name not in given}

    def secrets(self) -> list[str]:
        """Return what must appear in no text that leaves the worker."""
        found = (conninfo_to_dict(self.dsn).get("password"), os.environ.get("PGPASSWORD"))
        return [str(password) for password in found if password]

    async def connect(self, purpose: str, *, plain: bool = True) -> Conn:
        """Open a connection in autocommit; `plain` for our own Ops, otherwise with the adapters everybody knows."""
        options = {**self.options(purpose), "prepare_threshold": 5 if self.prepare else None}
        try:
            conn = await psycopg.AsyncConnection.connect(self.dsn, autocommit=True, **options)
        except psycopg.Error as error:
            raise translate(error) or error from error
        if plain:
            read_plainly(conn)
            await conn.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        return conn

    def connect_sync(self, purpose: str) -> SyncConn:
        """Open a connection for a handler that runs in a thread."""
        options = {**self.options(purpose), "prepare_threshold": 5 if self.prepare else None}
        try:
            return psycopg.connect(self.dsn, autocommit=True, **options)
        except psycopg.Error as error:
            raise translate(error) or error from error

    async def handshake(self) -> None:
        """Refuse a database this worker does not fit."""
        conn = await self.connect("start")
        try:
            answer = await run_async(conn, upkeep.handshake(), own=True)
        finally:
            await conn.close()
        installed = answer.schema_version
        if installed > SCHEMA_VERSION_KNOWN:
            raise SchemaTooNewError(f"The database has schema {installed}; this worker knows {SCHEMA_VERSION_KNOWN}.")
        if installed < SCHEMA_VERSION_KNOWN:
            raise SchemaTooOldError(f"The database has schema {installed}; this worker needs {SCHEMA_VERSION_KNOWN}.")
        self.read_committed = answer.read_committed
