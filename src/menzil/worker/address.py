"""Where the database is, and how a worker connects to it: without session state, so that a pooler may stand between."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from menzil.ops import connecting
from menzil.ops.dsn import server_of
from menzil.ops.preparing import Preparing

Conn = connecting.AsyncConn
SyncConn = connecting.Conn

# A server that vanished without a word is noticed within a third of a short lease, not after minutes.
_ADDED = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


@dataclass(slots=True)
class Address:
    """A DSN and what is known of the server behind it."""

    dsn: str = field(repr=False)
    preparing: Preparing = field(default_factory=lambda: Preparing(True, lambda _sentence: None), repr=False)
    read_committed: bool = True  # whether a lone statement is; if not, each gets a transaction that is

    def options(self, purpose: str) -> dict[str, Any]:
        """Return what to connect with besides the DSN; what the DSN says itself stays."""
        name = f"menzil worker ({purpose})"
        return connecting.options(self.dsn, prepare=self.preparing.on, fallback_application_name=name, **_ADDED)

    @property
    def where(self) -> tuple[str, int | None] | None:
        """Host and port of the server."""
        return server_of(self.dsn)

    def secrets(self) -> list[str]:
        """Return what no text may hold that leaves the worker: passwords, also as a URL spells them, and the DSN."""
        found = [str(conninfo_to_dict(self.dsn).get("password") or ""), os.environ.get("PGPASSWORD", "")]
        spelled = [way for password in found for way in (password, quote(password, safe=""), quote(password))]
        return [text for text in (*spelled, self.dsn if found[0] else "") if text]

    async def connect(self, purpose: str, *, plain: bool = True) -> Conn:
        """Open a connection in autocommit; `plain` for our own Ops, otherwise with psycopg's usual adapters."""
        conn = await connecting.connect_async(self.dsn, self.options(purpose))
        self.preparing.fit(conn)
        if plain:
            await connecting.configure_async(conn)
        return conn

    def connect_sync(self, purpose: str) -> SyncConn:
        """Open a connection for a handler that runs in a thread."""
        conn = connecting.connect(self.dsn, self.options(purpose))
        self.preparing.fit(conn)
        return conn

    async def handshake(self) -> None:
        """Refuse a database this worker does not fit."""
        conn = await self.connect("start")
        try:
            self.read_committed = await connecting.handshake_async(conn, "worker", self.dsn)
        finally:
            await conn.close()
