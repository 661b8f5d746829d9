"""The door in a real browser: the way in, forms of other sites, and names that are not ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page

from menzil.console import Access, Console
from menzil.console.tokens import make
from tests.console.chromium import IN_CHROMIUM, at
from tests.console.conftest import Full
from tests.console.seat import served

pytestmark = IN_CHROMIUM


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    """A page that may go to other sites, and may complain of what it is refused."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def evil() -> Iterator[tuple[int, dict[str, str]]]:
    """A site of somebody else: its port, and its one page, by which it sends what it likes."""
    shown: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = shown.get("page", "").encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.server_address[1], shown
    finally:
        server.shutdown()
        server.server_close()


def test_person_logs_in_with_a_token_and_out_again(page: Page, full: Full) -> None:
    token, line = make("ada", "viewer")
    with served(Console(full.dsn, tokens=[line])) as seat:
        page.goto(at(seat, "/workers"))
        assert "/login" in page.url
        page.keyboard.type("not the token")
        page.keyboard.press("Enter")
        page.wait_for_selector("p.trouble")
        assert "not on the list" in page.inner_text("main")
        page.fill("#token", token)
        page.keyboard.press("Enter")
        page.wait_for_url("**/workers")
        assert page.evaluate("document.cookie") == "", "no script reads the session"
        assert token not in page.content()
        page.click("button:has-text('Log out')")
        page.wait_for_url("**/login")
        page.goto(at(seat, "/workers"))
        assert "/login" in page.url


@pytest.mark.parametrize("site", ["evil.example", "127.0.0.1"])
def test_form_of_another_site_changes_nothing(page: Page, full: Full, evil: Any, site: str) -> None:
    port, shown = evil
    with served(Console(full.dsn, local=Access.admin("ada"))) as seat:
        form = page.request.get(at(seat, "/acts/channel-pause?channel=mail")).text()
        fields = form.split('name="csrf" value="')[1].split('"')[0], form.split('name="plan" value="')[1].split('"')[0]
        shown["page"] = (
            f'<form method="post" action="{at(seat, "/acts/channel-pause/do")}">'
            f'<input name="csrf" value="{fields[0]}"><input name="plan" value="{fields[1]}"><button>Go</button></form>'
        )
        page.goto(at(seat, "/workers"))  # a session that the other site would like to use
        page.goto(f"http://{site}:{port}/")
        with page.expect_navigation() as answer:
            page.click("button")
        assert answer.value.status == 403
        assert "sent by another site" in page.inner_text("main")
    with psycopg.connect(full.dsn) as conn:
        assert conn.execute("select paused from menzil.channels where name = 'mail'").fetchone() == (False,)


def test_other_site_can_neither_frame_nor_read_a_page(page: Page, full: Full, evil: Any) -> None:
    port, shown = evil
    with served(Console(full.dsn, local=Access.admin("ada"))) as seat:
        shown["page"] = f"<script>fetch('{at(seat, '/workers.json')}').then(() => read = 1, () => read = 0)</script>"
        page.goto(f"http://evil.example:{port}/")
        page.wait_for_function("window.read !== undefined")
        assert page.evaluate("window.read") == 0
        shown["page"] = f"<iframe src='{at(seat, '/workers')}'></iframe>"
        page.goto(f"http://evil.example:{port}/")
        (frame,) = page.frames[1:]
        assert "batch-1" not in frame.content()


def test_name_that_leads_here_is_not_answered_to(page: Page, full: Full) -> None:
    with served(Console(full.dsn, local=Access.admin("ada"))) as seat:
        answer = page.goto(f"http://evil.example:{seat.port}/workers")
        assert answer is not None
        assert answer.status == 400
        assert "does not answer to the name" in page.inner_text("main")
        assert "batch-1" not in page.content()
