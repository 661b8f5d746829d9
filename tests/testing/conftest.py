"""A database for the tests of one file, as the plugin would make it the database of a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import menzil
from menzil.embedded import Embedded
from menzil.testing.here import use
from tests.conftest import database


@pytest.fixture(scope="module")
def shared(server: Embedded, _installed: str, request: pytest.FixtureRequest) -> Iterator[str]:
    with database(server, f"shared_{Path(request.path).stem}", _installed) as dsn:
        yield dsn


@pytest.fixture
def client(shared: str) -> Iterator[menzil.Menzil]:
    """A client of the database of the test."""
    with use(shared), menzil.Menzil(shared) as client:
        yield client
