"""Sheets: a page is drawn once for all who may see and do the same, and nothing of a person is on it."""

from __future__ import annotations

import hashlib
import re

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from menzil.console import Access, Console, shared
from menzil.console.pages import all_pages
from menzil.console.render import environment
from menzil.console.sheets import Sheet, Sheets
from tests.console.conftest import Full
from tests.console.furnished import EXACT
from tests.console.paths import paths
from tests.console.seat import Browser, served

TOKENS = {name: f"{name}-token-of-a-test" for name in ("vera", "rita", "otto", "olga")}
ROLES = {"vera": "viewer", "rita": "reader", "otto": "operator", "olga": "operator"}


@pytest.fixture(autouse=True)
def ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are good for as long as a test lasts, so that only persons differ."""
    monkeypatch.setattr(shared, "GOOD_FOR", 600)


def entered(port: int, name: str) -> Browser:
    browser = Browser(port)
    assert browser.post("/login", {"token": TOKENS[name], "next": "/"}).status == 303
    return browser


def guarded(dsn: str) -> Console:
    tokens = [f"{name}:{ROLES[name]}:{hashlib.sha256(TOKENS[name].encode()).hexdigest()}" for name in TOKENS]
    return Console(dsn, tokens=tokens, payloads="show")


def test_viewers_of_one_role_share_the_sheet_and_not_the_token(full: Full) -> None:
    console = guarded(full.dsn)
    with served(console) as browser:
        otto, olga = entered(browser.port, "otto"), entered(browser.port, "olga")
        for path in paths(full).values():
            first = otto.get(path)
            drawn = console.desk.sheets.drawn
            second = olga.get(path)
            assert (first.status, second.status) == (200, 200), path
            assert console.desk.sheets.drawn == drawn, f"{path} was drawn again for another person"
            assert main(first.text) == main(second.text), path
            assert first.field("csrf") != second.field("csrf"), path
            assert "otto" in first.words
            assert "otto" not in second.words, path
            for one in (first.field("csrf"), *otto.cookies.values()):
                assert one not in second.text, path
                assert one not in main(first.text), f"{path} has the token of a session on its sheet"


def test_roles_never_share_a_sheet(full: Full) -> None:
    console, path = guarded(full.dsn), f"/messages/{full.ids.exact}"
    with served(console) as browser:
        seen = {name: entered(browser.port, name).get(path).text for name in ("otto", "rita", "vera", "rita", "otto")}
    assert EXACT in seen["otto"]
    assert EXACT not in seen["vera"], "a viewer sees no payload"
    assert "/acts/" in main(seen["otto"])
    assert "/acts/" not in main(seen["rita"])
    assert len({main(text) for text in seen.values()}) == 3


def test_open_pages_are_drawn_once_and_told_when_nothing_changed(full: Full) -> None:
    console = Console(full.dsn, local=Access.admin("ada"))
    with served(console) as browser:
        first = browser.get("/channels", X_Menzil_Live="1")
        drawn = console.desk.sheets.drawn
        for _ in range(5):
            assert main(browser.get("/channels", X_Menzil_Live="1").text) == main(first.text)
        assert main(browser.get("/channels").text) == main(first.text)
        assert console.desk.sheets.drawn == drawn
        same = browser.get("/channels", X_Menzil_Live="1", If_None_Match=str(first.headers["ETag"]))
        assert (same.status, same.body) == (304, b"")


def test_mark_of_an_answer_does_not_change_with_the_time_it_was_asked_at(full: Full) -> None:
    console = Console(full.dsn, local=Access.admin("ada"))
    with served(console) as browser:
        tags = set()
        for _ in range(2):
            tags.add(browser.get("/channels?contains=no+such+channel", X_Menzil_Live="1").headers["ETag"])
            console.desk.forget()
    assert len(tags) == 1


@pytest.mark.parametrize("name", ["access", "logout_token", "here", "theme", "nav", "databases", "csrf"])
def test_sheet_that_asks_who_looks_is_not_drawn(full: Full, name: str) -> None:
    desk = Console(full.dsn, local=Access.admin("ada")).desk
    asking = environment().from_string(f"{{{{ {name} }}}}")
    with pytest.raises(UndefinedError, match=f"'{name}' is undefined"):
        asking.render(desk.impersonal("", frozenset()))


def test_sheets_forget_the_one_that_was_not_looked_at_for_longest() -> None:
    few = Sheets(most=2)
    for key in ("a", "b", "a", "c"):
        few.get(key, lambda key=key: Sheet(Markup(key), key))  # type: ignore[misc]
    assert few.drawn == 3
    few.get("a", lambda: pytest.fail("it was kept"))
    few.get("b", lambda: Sheet(Markup("b"), "b"))
    assert few.drawn == 4
    short = Sheets(most_text=5)
    for key in ("aaaa", "bbbb", "aaaa"):
        short.get(key, lambda key=key: Sheet(Markup(key), key))  # type: ignore[misc]
    assert short.drawn == 3, "the texts of both are longer than what is kept"


def test_every_page_has_a_title_and_a_main_part(full: Full) -> None:
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser:
        for pattern, path in paths(full).items():
            page = browser.get(path).text
            assert page.count("<h1") == 1, pattern
            assert re.search(r"<title>\S.* · menzil</title>", page), pattern
    assert len(paths(full)) == len(all_pages())


def main(page: str) -> str:
    """What stands between the tags of the main part."""
    found = re.search(r"<main[^>]*>(.*)</main>", page, re.DOTALL)
    assert found is not None
    return found[1].strip()
