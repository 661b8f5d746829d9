"""One stage for all strangers of a test process: they come and go, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from menzil.embedded import Embedded
from tests.conftest import database
from tests.strangers.stage import Stage


@pytest.fixture(scope="module")
def stage(server: Embedded, _installed: str) -> Iterator[Stage]:
    with (
        database(server, "strangers", _installed) as dsn,
        database(server, "empty", _installed) as empty,
        Stage(dsn, empty).open() as stage,
    ):
        yield stage
