"""From what is wrong to what was done about it, with nothing but the keyboard."""

from __future__ import annotations

import psycopg
from playwright.sync_api import Page

from menzil import Menzil
from menzil.console import Access, Console
from tests.console.chromium import IN_CHROMIUM, at, becomes
from tests.console.seat import served

pytestmark = IN_CHROMIUM

FOCUS = """(wanted) => { const one = document.activeElement; return one.matches(wanted) && one.checkVisibility() &&
  getComputedStyle(one).outlineStyle !== "none" && parseFloat(getComputedStyle(one).outlineWidth) >= 1; }"""


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until the focus is there, and is seen."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("(wanted) => document.activeElement.matches(wanted)", wanted):
            assert page.evaluate(FOCUS, wanted), f"nobody sees that the focus is on {wanted}"
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def enter(page: Page, heading: str) -> None:
    """Press Enter, and wait for the page that it leads to."""
    page.keyboard.press("Enter")
    becomes(page, f"document.querySelector('h1')?.textContent.startsWith({heading!r})", True)


def test_from_the_overview_by_cause_and_plan_to_the_message_with_the_keyboard_alone(page: Page, db: str) -> None:
    with Menzil(db) as mq:
        mq.channel_set("billing")
        mq.send_batch("billing", [{"n": number} for number in range(3)])
        for message in mq.dequeue(3, 60, ["billing"]):
            mq.fail(message, "ValueError: bad row", permanent=True)
    with served(Console(db, local=Access.admin("ada"))) as seat, psycopg.connect(db, autocommit=True) as conn:
        page.goto(at(seat, "/"))
        tab_to(page, "#dead a")
        enter(page, "Dead letters")
        page.keyboard.press("j")
        enter(page, "Dead letters of one cause")
        tab_to(page, "main .head a.button.main")
        enter(page, "Plan a redrive")
        tab_to(page, "main button.main")
        page.keyboard.press("Enter")
        page.wait_for_url("**/acts/plan-redrive/done?key=*")
        tab_to(page, "main a.button[href*='plan-run']")
        enter(page, "Run a plan")
        tab_to(page, "main button.main")
        page.keyboard.press("Enter")
        page.wait_for_url("**/acts/plan-run/done?key=*")
        row = conn.execute("select status, actor from menzil.plans").fetchone()
        assert row is not None
        assert (row[0], row[1].split()[0]) == ("running", "ada")
        conn.execute("select menzil.plan_step(1)")
        page.keyboard.press("g")
        page.keyboard.press("m")
        becomes(page, "document.querySelector('h1')?.textContent", "Messages")
        page.keyboard.press("/")
        page.keyboard.type("channel:billing status:pending")
        enter(page, "Messages")
        becomes(page, "document.querySelectorAll('tbody tr').length", 3)
        page.keyboard.press("j")
        tab_to(page, "tbody tr th a")
        enter(page, "Message 6")
        assert "redriven" in page.inner_text("#family").lower() or "made from" in page.inner_text("#family").lower()
