"""Two databases that tests only look at, one empty and one with something of everything, and consoles on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from menzil.console import Access, Console
from menzil.embedded import Embedded
from tests.conftest import database
from tests.console.chromium import chromium, page
from tests.console.furnished import Furnished, furnish
from tests.console.hostile import Hostile, invade
from tests.console.seat import Browser, served

__all__ = ["Full", "chromium", "empty_dsn", "empty_seat", "full", "hostile", "page", "seat"]


@dataclass
class Full:
    """A furnished database."""

    dsn: str
    ids: Furnished


@pytest.fixture(scope="session")
def empty_dsn(server: Embedded, _installed: str) -> Iterator[str]:
    with database(server, "console_empty", _installed) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def full(server: Embedded, _installed: str) -> Iterator[Full]:
    with database(server, "console_full", _installed) as dsn:
        yield Full(dsn, furnish(dsn))


@pytest.fixture(scope="session")
def seat(full: Full) -> Iterator[Browser]:
    """An admin before the furnished database; tests of this session share it and change nothing."""
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser:
        yield browser


@pytest.fixture(scope="session")
def empty_seat(empty_dsn: str) -> Iterator[Browser]:
    """The same before an empty one."""
    with served(Console(empty_dsn, local=Access.admin("ada"))) as browser:
        yield browser


@pytest.fixture(scope="session")
def hostile(server: Embedded, _installed: str) -> Iterator[Hostile]:
    """A database in which every text is an attack."""
    with database(server, "console_hostile", _installed) as dsn:
        yield invade(dsn)
