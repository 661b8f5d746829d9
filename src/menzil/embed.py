"""Joins two rooms: an embedded PostgreSQL with menzil installed in it. This is what Menzil() without a DSN uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from menzil.embedded import Embedded
from menzil.install import migrate


@contextmanager
def open_embedded() -> Iterator[str]:
    """Start the embedded server, or join a running one, bring its schema up to date, and lend its DSN."""
    with Embedded() as server:
        migrate(server.dsn)
        yield server.dsn
