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
from tests.console.chromium import IN_CHROMIUM, at, becomes, watched
from tests.console.conftest import Full
from tests.console.paths import paths
from tests.console.seat import Browser, served

HERE = Path(__file__).parent
FAINT, SMALL, TINY = ((HERE / name).read_text().split("\n", 1)[1] for name in ("faint.js", "small.js", "tiny.js"))

pytestmark = IN_CHROMIUM


def every(full: Full) -> list[str]:
    """Every page, a message of each kind, a form, a plan, and what is not there."""
    more = [f"/messages/{number}" for number in (full.ids.hostile, full.ids.dead, full.ids.binary)]
    return [*paths(full).values(), *more, "/acts/send", "/acts/channel-pause?channel=billing", "/nowhere"]


def test_every_page_has_contrast_in_both_themes_and_fits_a_phone(page: Page, seat: Browser, full: Full) -> None:
    for path in every(full):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(at(seat, path))
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == "dark")
            assert page.evaluate(FAINT) == [], (path, scheme)
        assert page.evaluate(SMALL) == [], path
        for width in (768, 600, 320):
            page.set_viewport_size({"width": width, "height": 700})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            assert page.evaluate(TINY) == [], (path, width)


def test_navigation_on_a_phone_shows_where_the_page_stands(page: Page, seat: Browser) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    for path in ("/settings", "/channels"):
        page.goto(at(seat, path))
        box = page.evaluate("(one => one.getBoundingClientRect())(document.querySelector('.places [aria-current]'))")
        assert box["x"] >= 0, path
        assert box["x"] + box["width"] <= 320, path


def test_labels_of_a_filter_stand_beside_their_fields_on_a_phone(page: Page, seat: Browser) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(at(seat, "/audit"))
    apart = page.evaluate("""
      [...document.querySelectorAll('.seek label')].map(one => {
        const [a, b] = [one, document.getElementById(one.htmlFor)].map(each => each.getBoundingClientRect());
        return Math.abs(a.y + a.height / 2 - b.y - b.height / 2);
      })""")
    assert len(apart) == 4
    assert max(apart) < 8, apart


def test_names_of_two_hundred_letters_fit_a_phone(page: Page, db: str) -> None:
    """There is no place to break in them, in a plan and in the refusal of one that does not exist."""
    name, missing = "x" * 200, "y" * 200
    with Menzil(db) as mq:
        mq.channel_set(name)
    page.set_viewport_size({"width": 320, "height": 700})
    with served(Console(db, local=Access.admin("ada"))) as browser:
        for path in (
            f"/acts/channel-pause?channel={name}", f"/acts/channel-pause?channel={missing}", f"/channels/{name}",
            f"/acts/send?channel={name}&payload=1", f"/messages?q=channel:{missing}", f"/channels/{missing}",
        ):  # fmt: skip
            page.goto(at(browser, path))
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, path


def test_repairs_are_not_squeezed_to_a_word_per_line_on_a_phone(page: Page, seat: Browser) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(at(seat, "/health"))
    assert page.query_selector("td code") is not None, "nothing is wrong: no repair to look at"
    heights = page.evaluate("[...document.querySelectorAll('tbody tr')].map(row => row.offsetHeight)")
    assert max(heights) < 150


def test_facts_of_a_channel_stand_in_two_columns_on_a_phone(page: Page, seat: Browser) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(at(seat, "/channels/billing"))
    places = page.evaluate("[...document.querySelectorAll('.facts div')].map(one => one.getBoundingClientRect().x)")
    assert len(set(places)) == 2, places


def test_long_state_of_a_channel_wraps_and_leaves_the_last_column_in_view(
    page: Page, lively: tuple[Browser, Menzil]
) -> None:
    seat, mq = lively
    with psycopg.connect(mq.dsn, autocommit=True) as conn:
        conn.execute("set menzil.actor = 'grace.of.the.second.shift@operations-host-7.example.com'")
        conn.execute("select menzil.channel_pause('billing')")
    page.set_viewport_size({"width": 1120, "height": 700})
    page.goto(at(seat, "/channels"))
    assert "paused by grace" in page.inner_text("td.states")
    assert page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.scroll'))") == 0


def test_last_error_of_a_list_of_messages_is_not_cut_off(page: Page, lively: tuple[Browser, Menzil]) -> None:
    seat, mq = lively
    mq.channel_set("stock-import")
    mq.send("stock-import", {}, priority=5, ordering_key="warehouse-2")
    (message,) = mq.dequeue(1, 60, "stock-import")
    mq.fail(message, "SMTPRecipientsRefused: 550 mailbox unavailable, postal code missing", permanent=True)
    page.set_viewport_size({"width": 1120, "height": 700})
    page.goto(at(seat, "/messages?q=status%3Afailed"))
    assert "postal code missing" in page.inner_text("td.errors")
    assert page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.scroll'))") == 0


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


def test_every_page_works_without_a_script(chromium: Chromium, seat: Browser, full: Full) -> None:
    with watched(chromium, java_script_enabled=False) as seen:
        page = seen.page
        for path in every(full):
            page.goto(at(seat, path))
            if page.locator("main .trouble").count():  # a part that a busy machine cut short is there the next time
                page.goto(at(seat, path))
            assert page.locator("h1").count() == 1, path
            assert page.is_visible("main"), path
            assert page.locator(".only-script:visible").count() == 0, "a button that needs the script is not there"
            assert page.locator("main .trouble").count() == 0, path
        page.goto(at(seat, "/messages"))
        page.fill("#find", "channel:billing")
        page.press("#find", "Enter")
        page.wait_for_url("**/messages?q=channel%3Abilling")
        page.check("tbody tr:nth-child(2) input[name=ids]")
        page.click("button:has-text('Replay')")
        page.wait_for_url("**/acts/plan-replay?*ids=*")
        assert "replay 1 by id" in page.inner_text("main"), "the form is complete, so its plan is shown at once"
        assert seen.outside == []


def test_acts_work_without_a_script(chromium: Chromium, lively: tuple[Browser, Menzil]) -> None:
    seat, _ = lively
    with watched(chromium, java_script_enabled=False) as seen:
        page = seen.page
        page.goto(at(seat, "/channels/billing"))
        page.click("a.button:has-text('Change limits')")
        page.fill("#f-max_concurrency", "7")
        page.click("button:has-text('Show the plan')")
        page.click("button[form=edit]")
        assert page.input_value("#f-max_concurrency") == "7", "back from the plan to the form"
        page.click("button:has-text('Show the plan')")
        page.click(".plan button.main")
        page.wait_for_url("**/done?key=*")
        page.click("a:has-text('Go on')")
        page.click("a.button:has-text('Pause')")
        page.click(".plan button.main")
        page.wait_for_url("**/done?key=*")
        assert "holds its messages" in page.inner_text("main")
        page.click("a.button.undo")
        page.click(".plan button.main")
        page.wait_for_url("**/done?key=*")
        page.goto(at(seat, "/channels/billing"))
        assert "0 of 7" in page.inner_text("#limits")


def test_console_on_plain_http_beyond_this_machine_takes_forms_of_its_own_site(
    page: Page, lively: tuple[Browser, Menzil], db: str
) -> None:
    # A browser leaves Sec-Fetch-Site out there: only Origin tells which site sent a form.
    with served(Console(db, local=Access.admin("ada"), hosts=["queue.example"])) as seat:
        page.goto(f"http://queue.example:{seat.port}/acts/channel-pause?channel=billing")
        page.click("button:has-text('Pause'):not(#pause)")
        page.wait_for_url("**/done?key=*")
        assert "holds its messages" in page.inner_text("main")
