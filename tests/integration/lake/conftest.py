"""One database and one lake for all tests that only look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from menzil.embedded import Embedded
from menzil.spark.lake.catalog import open_catalog
from tests.conftest import database
from tests.integration.lake.engines import make_tables


@dataclass
class Lake:
    """A lake and the database that knows it."""

    dsn: str
    path: str
    pointer: str


@pytest.fixture(scope="session")
def lake(server: Embedded, _installed: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    path: Path = tmp_path_factory.mktemp("a läke with spaces")
    with database(server, "lake_to_look_at", _installed) as dsn:
        table = make_tables(open_catalog(dsn), str(path))
        yield Lake(dsn, str(path), table.metadata_location)
