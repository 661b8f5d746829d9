"""Pictures for README and the docs, taken anew on every run.

They go into a temporary folder; `make pictures` sets MENZIL_PICTURES=docs/pictures and keeps them.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page

from menzil.console import Access, Console
from menzil.embedded import Embedded
from tests.conftest import database
from tests.console.chromium import IN_CHROMIUM
from tests.console.pictures import MOST_KB, SCALE, SCHEMES, WIDTH, Shot, keep, looking, shots, size_of
from tests.console.seat import Browser, served
from tests.console.shop import Shop, beat, open_shop

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "pictures"
#: Where pictures are kept, or empty: then they are only looked at.
KEEPING = os.environ.get("MENZIL_PICTURES", "")
#: Words that tell about the machine a picture was made on.
OURS = [
    str(ROOT),
    str(Path.home()),
    socket.gethostname(),
    *([] if getpass.getuser() == "root" else [getpass.getuser()]),
]

pytestmark = IN_CHROMIUM


@dataclass
class Seat:
    """A console before the queue of a shop."""

    dsn: str
    shop: Shop
    browser: Browser

    def at(self, path: str) -> str:
        return f"http://127.0.0.1:{self.browser.port}{path}"


@pytest.fixture(scope="module")
def seat(server: Embedded, _installed: str) -> Iterator[Seat]:
    with database(server, "console_shop", _installed) as dsn:
        shop = open_shop(dsn)
        with served(Console(dsn, local=Access.admin("ada"))) as browser:
            yield Seat(dsn, shop, browser)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Path(KEEPING) if KEEPING else tmp_path_factory.mktemp("pictures")
    place.mkdir(parents=True, exist_ok=True)
    return place


def _stand(page: Page, address: str) -> None:
    """Open the page, and again while a machine at its limits leaves parts out. A picture to keep says no long time."""
    began = time.monotonic()
    page.goto(address)
    while page.query_selector(".trouble") and time.monotonic() < began + 60:
        page.goto(address)
    while KEEPING and _took_long(page) and time.monotonic() < began + 6:
        page.goto(address)


def _took_long(page: Page) -> bool:
    told = page.query_selector("[data-ms]")
    return told is not None and int(told.inner_text()) > 120


def _take(page: Page, shot: Shot, folder: Path, scheme: str) -> None:
    """Look at the page as a reader of the picture would, then keep it."""
    words = " ".join(page.inner_text("body").split())
    assert [part for part in shot.shows if part not in words] == [], words[:1_500]
    assert [word for word in OURS if word in words] == []
    assert page.query_selector(".trouble") is None, f"a part of {shot.name} could not be asked for"
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH, f"{shot.name} scrolls sideways"
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert dark == (scheme == "dark")
    file = keep(page, folder / f"{shot.name}-{scheme}.webp", shot.height)
    assert size_of(file) == (WIDTH * SCALE, shot.height * SCALE)


def test_console_looks_as_in_the_pictures(chromium: Chromium, seat: Seat, folder: Path) -> None:
    for scheme in SCHEMES:
        with looking(chromium, scheme) as page:
            for shot in shots(seat.shop):
                with psycopg.connect(seat.dsn, autocommit=True) as conn:
                    beat(conn)
                _stand(page, seat.at(shot.path))
                _take(page, shot, folder, scheme)


def test_report_looks_as_in_the_pictures(chromium: Chromium, seat: Seat, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    command = [sys.executable, "-m", "menzil", "report", "--out", str(out), "--from", "-1h"]
    env = {**os.environ, "MENZIL_DSN": seat.dsn, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run(command, check=True, env=env, cwd=tmp_path, timeout=120)
    shot = Shot("report", "", 900, ("What is wrong", "The circuit of partner is open", "dead letters of crm: HTTP 401"))
    for scheme in SCHEMES:
        with looking(chromium, scheme) as page:
            page.goto(out.as_uri())
            _take(page, shot, folder, scheme)


def test_kept_pictures_are_all_there_small_and_shown_in_both_themes(seat: Seat) -> None:
    names = {
        f"{shot.name}-{scheme}.webp" for shot in [*shots(seat.shop), Shot("report", "", 0, ())] for scheme in SCHEMES
    }
    files = list(KEPT.glob("*"))
    assert {file.name for file in files} == names
    assert sum(file.stat().st_size for file in files) < MOST_KB * 1_000
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"pictures/([\w-]+\.webp)", page.read_text())}
    assert shown == names
    for page in pages:
        for dark, light in re.findall(r'srcset="([^"]+)">\s*<img [^>]*src="([^"]+)"', page.read_text()):
            assert (page.parent / dark).is_file(), page
            assert dark.replace("-dark.", "-light.") == light
