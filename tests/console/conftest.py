"""Two databases that tests only look at, one empty and one with something of everything, and consoles on them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import sync_playwright

from menzil.console import Access, Console
from menzil.embedded import Embedded
from tests.conftest import database
from tests.console.furnished import Furnished, furnish
from tests.console.seat import Browser, served

#: The browser of this machine, or None.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    """A browser for one file of tests. Its event loop runs as long as it does, so it does not outlive the file."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


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
