"""Pages in a real browser: the policy holds, a refresh disturbs nobody, keys work, and a phone is wide enough."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page

from menzil import Menzil
from menzil.console import Access, Console
from tests.console.chromium import CHROMIUM, IN_CHROMIUM, at, becomes
from tests.console.conftest import Full
from tests.console.paths import paths
from tests.console.seat import Browser, served

HERE = Path(__file__).parent
FAINT, SMALL = ((HERE / name).read_text().split("\n", 1)[1] for name in ("faint.js", "small.js"))

pytestmark = IN_CHROMIUM


def test_no_page_breaks_the_policy_and_none_is_wider_than_a_phone(page: Page, seat: Browser, full: Full) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    for path in [*paths(full).values(), "/acts/channel-pause?channel=billing", f"/messages/{full.ids.hostile}"]:
        page.goto(at(seat, path))
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 320, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast_and_targets_have_size(page: Page, seat: Browser, full: Full, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path in [*paths(full).values(), "/acts/channel-pause?channel=billing", f"/messages/{full.ids.dead}"]:
        page.goto(at(seat, path))
        assert page.evaluate(FAINT) == [], path
        assert page.evaluate(SMALL) == [], path


def test_theme_is_chosen_with_a_link_and_stays(page: Page, seat: Browser) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(at(seat, "/workers"))
    page.click("a.theme")
    page.wait_for_url("**/workers")
    assert page.get_attribute("html", "data-theme") == "dark"
    page.goto(at(seat, "/channels"))
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


@pytest.fixture
def lively(db: str) -> Iterator[tuple[Browser, Menzil]]:
    """A console that only this test looks at, and a client to change what it shows."""
    with Menzil(db) as mq:
        mq.channel_set("billing")
        mq.send_batch("billing", [{"invoice": number} for number in range(3)])
        with served(Console(db, local=Access.admin("ada"))) as browser:
            yield browser, mq


def test_open_page_refreshes_itself_and_keeps_what_the_person_did(page: Page, lively: tuple[Browser, Menzil]) -> None:
    seat, mq = lively
    page.goto(at(seat, "/messages"))
    page.click("summary:has-text('Qualifiers')")
    page.focus("#q")
    page.fill("#q", "half typed")
    page.evaluate("document.querySelector('tbody tr').mine = true")
    for number in range(40):
        mq.send("billing", {"invoice": number})
    becomes(page, "document.querySelectorAll('tbody tr').length", 43)
    assert page.evaluate("document.querySelector('form.seek details').open")
    assert page.evaluate("document.activeElement.id") == "q"
    assert page.input_value("#q") == "half typed"
    assert page.evaluate("[...document.querySelectorAll('tr')].find((row) => row.mine).dataset.key") == "3", (
        "rows move, they are not replaced"
    )
    assert page.text_content("#told") == "43 messages"
    assert page.title().startswith("43 messages")


def test_refresh_waits_for_the_person(page: Page, lively: tuple[Browser, Menzil]) -> None:
    seat, mq = lively
    page.goto(at(seat, "/messages"))
    count = "document.querySelectorAll('tbody tr').length"
    page.click("#pause")
    assert page.get_attribute("#pause", "aria-pressed") == "true"
    mq.send("billing", {"invoice": 3})
    page.wait_for_timeout(6500)
    assert page.evaluate(count) == 3, "paused by the button"
    page.keyboard.press(".")
    becomes(page, count, 4)
    page.keyboard.press("p")
    assert page.get_attribute("#pause", "aria-pressed") == "false"
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
    mq.send("billing", {"invoice": 4})
    page.wait_for_timeout(6500)
    assert page.evaluate(count) == 4, "held while text is selected"
    page.evaluate("getSelection().removeAllRanges()")
    becomes(page, count, 5)


def test_keys_lead_around(page: Page, seat: Browser) -> None:
    page.goto(at(seat, "/workers"))
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"
    page.keyboard.type("gc/?")
    assert page.input_value("#find") == "gc/?", "keys are letters while a person writes"
    page.keyboard.press("Tab")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**/channels")
    page.keyboard.press("j")
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.textContent") != first
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    shown = page.inner_text("#keys")
    assert all(word in shown for word in ("search", "next row", "pause", "overview", "channels"))
    page.keyboard.press("Escape")
    page.keyboard.press("Control+g")
    page.keyboard.press("c")
    assert page.url.endswith("/channels")


def test_keys_can_be_turned_off(page: Page, seat: Browser) -> None:
    page.goto(at(seat, "/workers"))
    page.keyboard.press("?")
    page.check("#keys-off")
    page.click("#keys button")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_timeout(300)
    assert page.url.endswith("/workers")


def test_person_pauses_a_channel_with_the_mouse(page: Page, lively: tuple[Browser, Menzil], db: str) -> None:
    seat, _ = lively
    page.goto(at(seat, "/channels/billing"))
    page.click("a.button:has-text('Pause')")
    assert "accepts messages and hands none out" in page.inner_text("main")
    page.click("button:has-text('Pause'):not(#pause)")
    page.wait_for_url("**/done?key=*")
    assert "holds its messages" in page.inner_text("main")
    with psycopg.connect(db) as conn:
        row = conn.execute("select actor, via from menzil.event_log where event_type = 'channel.paused'").fetchone()
        assert row is not None
        assert re.match(r"ada\b", row[0])
        assert row[1] == "console"


def test_pages_and_acts_work_without_a_script(chromium: Chromium, lively: tuple[Browser, Menzil], full: Full) -> None:
    seat, _ = lively
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(at(seat, "/channels/billing"))
    assert not page.is_visible("#pause"), "a button that needs the script is not there without it"
    page.click("a.button:has-text('Pause')")
    page.click("button:has-text('Pause'):not(#pause)")
    page.wait_for_url("**/done?key=*")
    assert "holds its messages" in page.inner_text("main")
    context.close()


def test_console_on_plain_http_beyond_this_machine_takes_forms_of_its_own_site(
    chromium: Chromium, lively: tuple[Browser, Menzil], db: str
) -> None:
    # A browser leaves Sec-Fetch-Site out there: only Origin tells which site sent a form.
    with served(Console(db, local=Access.admin("ada"), hosts=["queue.example"])) as seat:
        context = chromium.browser_type.launch_persistent_context(
            "", executable_path=CHROMIUM, args=["--no-sandbox", "--host-resolver-rules=MAP queue.example 127.0.0.1"]
        )
        page = context.new_page()
        page.goto(f"http://queue.example:{seat.port}/acts/channel-pause?channel=billing")
        page.click("button:has-text('Pause'):not(#pause)")
        page.wait_for_url("**/done?key=*")
        assert "holds its messages" in page.inner_text("main")
        context.close()
