"""An act as a person does it in a browser: open the form, see the plan, confirm, see what happened."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg

from tests.console.seat import Answer, Browser


@dataclass
class Planned:
    """A plan that is shown."""

    act: str
    page: Answer

    @property
    def statements(self) -> str:
        return self.block("SQL")

    @property
    def command(self) -> str:
        return self.block("Command line")

    def block(self, label: str) -> str:
        """The text to copy below this label."""
        pattern = rf'<p class="help">{label}</p>\s*<pre class="code[^"]*"[^>]*><code>(.*?)</code></pre>'
        found = re.search(pattern, self.page.text, re.DOTALL)
        assert found is not None, label
        return unescape(found[1])

    def fields(self, typed: str | None = None) -> dict[str, str]:
        sent = {"csrf": self.page.field("csrf"), "plan": self.page.field("plan")}
        if "Type" in self.page.words and 'name="typed"' in self.page.text:
            count = re.search(r"Type (\d+) to confirm", self.page.words)
            assert count is not None
            sent["typed"] = count[1] if typed is None else typed
        return sent


def planned(browser: Browser, act: str, **given: str) -> Planned:
    """Fill the form in, and see the plan."""
    form = browser.get(f"/acts/{act}?{urlencode({**given, 'edit': '1'})}")
    assert form.status == 200, form.words[:500]
    page = browser.post(f"/acts/{act}", {"csrf": form.field("csrf"), **given})
    assert page.status == 200, page.words[:800]
    return Planned(act, page)


def confirm(browser: Browser, plan: Planned, **more: Any) -> Answer:
    """Confirm a plan, and see what happened."""
    answer = browser.post(f"/acts/{plan.act}/do", plan.fields(**more))
    if answer.status != 303:
        return answer
    return browser.get(answer.headers["Location"])


def do(browser: Browser, act: str, **given: str) -> Answer:
    """Do it."""
    done = confirm(browser, planned(browser, act, **given))
    assert done.status == 200, done.words[:800]
    assert 'class="what"' in done.text, done.words[:800]
    assert "nothing was done a second time" not in done.words
    return done


def undo_of(done: Answer, kind: str = "button undo") -> tuple[str, dict[str, str]] | None:
    """The act that takes it back, as the page of a result offers it; of the kind `button`, the one that follows."""
    links = [unescape(one) for one in re.findall(rf'class="{kind}" href="(/acts/[^"]+)"', done.text)]
    if not links:
        return None
    found = urlsplit(links[-1])
    return found.path.removeprefix("/acts/"), dict(parse_qsl(found.query))


def events(dsn: str, after: int = 0) -> list[tuple[str, str, str, str]]:
    """What the log says: (event, entity, actor, via)."""
    with psycopg.connect(dsn) as conn:
        return conn.execute(
            "select event_type, entity_id, actor, via from menzil.event_log where id > %s order by id", (after,)
        ).fetchall()


def last_event(dsn: str) -> int:
    with psycopg.connect(dsn) as conn:
        row = conn.execute("select coalesce(max(id), 0) from menzil.event_log").fetchone()
        assert row is not None
        return int(row[0])
