"""Which database a test uses: the fixtures say so, and the functions of this room ask here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from menzil.model.errors import UsageError
from menzil.ops.choosing import VARIABLE

_dsns: list[str] = []


@contextmanager
def use(dsn: str) -> Iterator[str]:
    """Make this the database of the test, and the one of clients and workers that were told no other."""
    before = os.environ.get(VARIABLE)
    _dsns.append(dsn)
    os.environ[VARIABLE] = dsn
    try:
        yield dsn
    finally:
        _dsns.remove(dsn)
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def here(dsn: str | None, what: str) -> str:
    """The database given, or that of the test. Never any other: a test must not empty the queue of a real system."""
    if dsn is not None:
        return dsn
    if not _dsns:
        given = "dsn=" if what in ("drain", "fire") else "conn= or dsn="
        hint = f"ask for the fixture mq or menzil_db, or give {given}"
        raise UsageError(f"{what} does not know the database of this test.", hint=hint)
    return _dsns[-1]
