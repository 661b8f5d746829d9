"""An open page tells the new answer by itself, and leaves the person who reads it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
from playwright.sync_api import Page

from menzil import Menzil
from menzil.console import Access, Console
from menzil.console.database import Seen
from menzil.embedded import Embedded
from tests.conftest import database
from tests.console.chromium import IN_CHROMIUM, at, becomes, becomes_one_of
from tests.console.seat import Browser, served

pytestmark = IN_CHROMIUM

#: How often an open page looks until it tells that a reason is gone: an answer that is still good, and a new one. With
#: 2 s between two looks that is within 6 s; a busy machine may take longer for each, and for no more of them.
LOOKS = 2
ANSWER = "document.querySelector('#why .verdict strong').textContent"
# When each look of the page began that was answered, and when its verdict changed. Clocks of the browser.
WATCHED = """() => {
  window.since = performance.now();
  const says = () => document.querySelector('#why .verdict strong')?.textContent, said = says();
  new MutationObserver(() => { if (says() !== said) window.toldAt ??= performance.now(); }).observe(
    document.querySelector('#why'), { subtree: true, childList: true, characterData: true });
}"""
BEGAN = """performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch'
  && [200, 304].includes(one.responseStatus) && one.startTime > window.since).map((one) => one.startTime)"""


@dataclass
class Stuck:
    """Messages by the reason for which they wait, and the statement that takes it away."""

    seat: Browser
    conn: psycopg.Connection
    waiting: dict[str, int] = field(default_factory=dict)
    ways: dict[str, str] = field(default_factory=dict)

    def why(self, reason: str) -> tuple[str, str]:
        row = self.conn.execute(
            "select reason, sentence from menzil.message_why(%s) limit 1", (self.waiting[reason],)
        ).fetchone()
        assert row is not None
        return row[0], row[1]


class Busy(Seen):
    """Whatever a look did: the database seems to have worked for 50 ms, as it may on a busy machine."""

    spent = property(lambda self: 0.05, lambda self, seconds: None)


@pytest.fixture(scope="module")
def busy() -> Iterator[None]:
    """A console whose budget has no room, and that leaves nothing out of a page that takes long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("menzil.console.parts.Seen", Busy)
        patch.setattr("menzil.console.budget.Budget.has_room", lambda self: False)
        patch.setattr("menzil.console.desk.PATIENCE", 60)
        patch.setattr("menzil.console.serving.PAGE", 60)
        yield


@pytest.fixture(scope="module")
def stuck(server: Embedded, _installed: str, busy: None) -> Iterator[Stuck]:
    with (
        database(server, "console_live", _installed) as dsn,
        psycopg.connect(dsn, autocommit=True) as conn,
        Menzil(dsn) as mq,
        served(Console(dsn, local=Access.admin("ada"))) as seat,
    ):
        made = Stuck(seat, conn)
        conn.execute("select menzil.worker_hello('w/1', 'host', 1, '0.2.0')")
        mq.channel_set("paused")
        made.waiting["channel_paused"] = mq.send("paused", {"n": 1})
        mq.channel_pause("paused")
        made.ways["channel_paused"] = "select menzil.channel_resume('paused')"
        mq.channel_set("full", max_concurrency=1)
        mq.send("full", {"n": 1})
        (taken,) = mq.dequeue(1, 600, ["full"], worker="w/1")
        made.waiting["concurrency_full"] = mq.send("full", {"n": 2})
        made.ways["concurrency_full"] = f"select menzil.message_complete(array[{taken.id}], array[{taken.attempt}])"
        number = mq.create_endpoint("crm", "http", {"url": "https://crm.example/"})
        made.waiting["circuit_open"] = mq.send("crm", {"n": 1})
        row = conn.execute("select value::int from menzil.settings where name = 'circuit_failure_threshold'").fetchone()
        for _ in range(row[0] if row else 10):
            conn.execute("select menzil.update_circuit_breaker(%s, false)", (number,))
        made.ways["circuit_open"] = "select menzil.reset_circuit_breaker('crm')"
        yield made


def in_search(page: Page) -> None:
    """The person is about to type over a part of a search."""
    page.fill("#find", "channel:billing")
    page.evaluate("document.getElementById('find').setSelectionRange(8, 15)")


def on_link(page: Page) -> None:
    """The focus is on a link of the part that is exchanged."""
    page.focus("#body a:has-text('redact')")


def on_summary(page: Page) -> None:
    """The person has opened the raw body and reads it."""
    page.click("#body summary:has-text('Raw')")


WHERE = """() => [document.activeElement.outerHTML.slice(0, 60), document.activeElement.selectionStart || 0,
  document.activeElement.selectionEnd || 0, document.querySelectorAll('#body details')[1]?.open,
  Math.round(document.querySelector('#body').getBoundingClientRect().top)]"""


def _assert_kept(now: list[object], before: list[object]) -> None:
    """Heights of lines are fractions of a pixel, so the place on the screen may be rounded to the next one."""
    assert now[:-1] == before[:-1]
    assert now[-1] == pytest.approx(before[-1], abs=1)


@pytest.mark.parametrize(
    ("reason", "holding"),
    [("channel_paused", in_search), ("concurrency_full", on_link), ("circuit_open", on_summary)],
)
def test_open_page_tells_that_a_reason_is_gone(
    page: Page, stuck: Stuck, reason: str, holding: Callable[[Page], None]
) -> None:
    page.set_viewport_size({"width": 900, "height": 300})
    page.goto(at(stuck.seat, f"/messages/{stuck.waiting[reason]}"))
    first = stuck.why(reason)
    assert first[0] == reason
    assert page.evaluate(ANSWER) == first[1]
    page.evaluate("window.mine = document.querySelector('#why')")
    holding(page)
    page.evaluate("document.querySelector('#body').scrollIntoView()")
    page.wait_for_timeout(100)  # for the browser to choose what it keeps in its place when lines above go
    before = page.evaluate(WHERE)
    assert page.evaluate("scrollY") > 100
    stuck.conn.execute(stuck.ways[reason])
    page.evaluate(WATCHED)
    # The next reason may be that nothing dequeued lately, which becomes true while the page is looked at.
    sentences: set[object] = set()

    def now() -> set[object]:
        found, sentence = stuck.why(reason)
        assert found != reason
        sentences.add(sentence)
        return sentences

    now()
    becomes_one_of(page, ANSWER, now)
    told = page.evaluate("window.toldAt ?? window.since")
    assert len([began for began in page.evaluate(BEGAN) if began < told]) <= LOOKS
    assert page.evaluate("window.mine === document.querySelector('#why')"), "the page was not loaded again"
    _assert_kept(page.evaluate(WHERE), before)


def test_page_on_a_hidden_tab_asks_nothing_and_asks_at_once_when_it_is_seen(page: Page, stuck: Stuck) -> None:
    page.goto(at(stuck.seat, f"/messages/{stuck.waiting['channel_paused']}"))
    # Chromium shows every page of a test: only the word of the browser is replaced, the script is the real one.
    hide = "Object.defineProperty(document, 'hidden', { configurable: true, get: () => %s })"
    tell = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(f"{hide % 'true'}; {tell}; window.since = performance.now()")
    page.wait_for_timeout(4_500)
    assert page.evaluate(BEGAN) == [], "two turns of 2 seconds have passed"
    page.evaluate(f"{hide % 'false'}; window.since = performance.now(); {tell}")
    becomes(page, f"{BEGAN}.length > 0", True)
    assert page.evaluate(BEGAN)[0] < page.evaluate("window.since") + 1_000, "before its next turn"
