"""Joins two rooms: an embedded PostgreSQL with menzil installed in it. This is the last of the five answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from menzil.embedded import Embedded, EmbeddedError
from menzil.install import migrate
from menzil.ops.choosing import why_embedded
from menzil.ops.dsn import Dsn

#: Without a handler on purpose: where a program has set up no logging, Python shows warnings on standard error.
LOGGER = logging.getLogger("menzil.database")

_told: set[str] = set()


@contextmanager
def open_embedded(*, migrated: bool = True) -> Iterator[Dsn]:
    """Start the embedded server, or join a running one, bring its schema up to date, and lend its DSN."""
    try:
        server = Embedded().start()
    except EmbeddedError as error:
        hint = f"{error.hint}; " if error.hint else ""
        raise EmbeddedError(error.message, hint=f"{hint}or set MENZIL_DSN: {why_embedded()}") from error
    with server:
        if str(server.data_dir) not in _told:
            _told.add(str(server.data_dir))
            # A program and its worker that each get an embedded server by accident would never meet.
            LOGGER.warning("The embedded PostgreSQL in %s is used: %s.", server.data_dir, why_embedded())
        dsn = Dsn(server.dsn, f"nothing else: {why_embedded()}, so it is the embedded PostgreSQL in {server.data_dir}")
        if migrated:
            migrate(dsn)
        yield dsn
