"""A crew of real worker processes on a database of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.crew import Crew, crew_on
from tests.acceptance.pooler import PGBOUNCER, pooler


@pytest.fixture
def crew(db: str) -> Iterator[Crew]:
    """Workers on the database `db`; whatever still runs at the end is killed."""
    place = Path(tempfile.mkdtemp(prefix="mzw-"))
    yield from crew_on(db, place)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def pooled(db: str) -> Iterator[str]:
    """The DSN of the same database behind a pooler in transaction mode."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    with pooler(db) as dsn:
        yield dsn
