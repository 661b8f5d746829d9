"""Chromium, and pages in it that notice everything a page must not do. A conftest takes the fixtures from here."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import ConsoleMessage, Error, Page, sync_playwright

from tests.console.seat import Browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

#: What a file of browser tests is marked with.
IN_CHROMIUM = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no browser on this machine"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    # For one file: while it is there no test of this process may start an event loop of its own.
    with sync_playwright() as playwright:
        # Names of other sites lead to this machine: nothing that a test lets out leaves it.
        args = ["--no-sandbox", "--host-resolver-rules=MAP *.example 127.0.0.1"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=args)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    """A page whose every complaint fails the test: a policy that was broken, an error of the script, a way out."""
    with watched(chromium) as seen:
        yield seen.page
        assert seen.outside == []


@dataclass
class Watched:
    """A page, and what it did: complaints of the browser, dialogs, and requests to other origins than its own."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """Requests that left the machine, or its own origin."""
        own = ("http://127.0.0.1:", "http://queue.example:", "data:", "file:")
        return [url for url in self.requests if not url.startswith(own)]


@contextmanager
def watched(chromium: Chromium, **options: Any) -> Iterator[Watched]:
    """A page that is watched; what it complains of fails the test at the end."""
    context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    made = context.new_page()
    seen = Watched(made)
    made.on("pageerror", lambda error: seen.complaints.append(str(error)))
    made.on("console", lambda said: seen.complaints.append(said.text) if _is_bad(said) else None)
    made.on("dialog", lambda dialog: (seen.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))  # type: ignore[call-overload]
    context.on("request", lambda request: seen.requests.append(request.url))
    context.on("page", lambda other: seen.complaints.append(f"window {other.url}"))
    try:
        yield seen
    finally:
        context.close()
    assert not seen.complaints, seen.complaints


#: What the browser says of pages as they should be: one that is not there, and a header that counts only with TLS.
_NOTES = ("Failed to load resource", "The Cross-Origin-Opener-Policy header has been ignored")


def _is_bad(said: ConsoleMessage) -> bool:
    return said.type == "error" and not said.text.startswith(_NOTES)


def at(seat: Browser, path: str) -> str:
    return f"http://127.0.0.1:{seat.port}{path}"


def becomes(page: Page, asked: str, wanted: object, within: float = 60) -> float:
    """Wait for something on the page; return how long it took. The policy forbids what playwright would wait with."""
    return becomes_one_of(page, asked, lambda: (wanted,), within)


def becomes_one_of(page: Page, asked: str, wanted: Callable[[], Collection[object]], within: float = 60) -> float:
    """The same where what is wanted changes while the test waits, such as a sentence about the last minute."""
    began = time.monotonic()
    while (found := _asked(page, asked)) not in (right := wanted()):
        assert time.monotonic() - began < within, f"{found} is none of {right}"
        page.wait_for_timeout(100)
    return time.monotonic() - began


def _asked(page: Page, asked: str) -> object:
    try:
        return page.evaluate(asked)
    except Error as error:
        if "context was destroyed" not in error.message:
            raise
        return "on the way to another page"
