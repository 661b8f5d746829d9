"""An answer that does not come for want of time: the last good one is shown in its place, or it is asked for again."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest

from menzil.console import Access, Console, shared
from menzil.console.budget import Budget
from menzil.console.database import TooLateError
from menzil.console.pages import all_pages
from menzil.console.parts import Trouble
from menzil.console.shared import Shared
from tests.console.conftest import Full
from tests.console.seat import served
from tests.console.test_sharing import Later, Told, broke, never

__all__ = ["never"]


def cut(spent: float = 1.0) -> Future[Told]:
    made: Future[Told] = Future()
    made.set_result(Told(0, spent=spent, trouble=Trouble("cut", slow=True)))
    return made


@pytest.mark.usefixtures("never")
def test_last_good_answer_outlives_answers_that_time_was_missing_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "SHARE_OF_TROUBLE", 1e9)
    seats, good, locked = Shared(Budget(rate=0, most=1)), Future[Told](), Future[Told]()
    good.set_result(Told(1))
    locked.set_result(Told(2, trouble="locked"))
    assert seats.get("key", lambda: good).last is None
    for _ in range(3):
        found = seats.get("key", lambda: cut())
        assert found.known in (good, None)
        assert found.last is good
    with monkeypatch.context() as later:
        later.setattr(shared, "OPEN", 0)
        assert seats.get("key", lambda: cut()).last is None, "two minutes are over"
    assert seats.get("key", lambda: locked).last is good
    assert seats.get("key", lambda: cut()).last is None, "what a lock keeps away is told, and forgotten here"


def test_what_only_stood_in_line_is_asked_for_again_at_once() -> None:
    seats = Shared(broke())
    assert seats.get("line", lambda: cut(0)).future.result().trouble.slow
    good = Future[Told]()
    good.set_result(Told(1))
    assert seats.get("line", lambda: good, 600).future is good
    dear = cut(60)
    seats.get("dear", lambda: dear)
    assert seats.get("dear", lambda: good, 600).future is dear, "a look that cannot end is dear"


@pytest.mark.usefixtures("never")
def test_page_shows_the_last_good_answer_with_its_age_where_time_is_missing(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(error: type[psycopg.Error]) -> Callable[[Any], Any]:
        def ask(look: Any) -> Any:
            raise error

        return ask

    page = next(one for one in all_pages() if one.path == "/plans")
    (name,) = page.parts
    monkeypatch.setattr(shared, "SHARE", 1e9)
    monkeypatch.setattr(shared, "SHARE_OF_TROUBLE", 1e9)
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser:
        assert 'class="trouble"' not in browser.get("/plans").text
        monkeypatch.setitem(page.parts, name, part(psycopg.errors.QueryCanceled))
        monkeypatch.setattr("menzil.console.page.datetime", Later)
        for headers in ({}, {"X_Menzil_Live": "1"}):
            answer = browser.get("/plans", **headers)
            assert "after the outage" in answer.words
            assert 'class="trouble"' not in answer.text
            assert re.search(r"\b10\d s old", answer.words), answer.words[:300]
        assert "took too long" in browser.get("/plans.json").text, "a twin has no place for its age"
        monkeypatch.setitem(page.parts, name, part(psycopg.errors.LockNotAvailable))
        assert "A table is locked" in browser.get("/plans").words, "an operator is to know of a lock"


@pytest.mark.usefixtures("never")
def test_page_asks_again_for_what_another_page_had_no_time_for(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    page = next(one for one in all_pages() if one.path == "/plans")
    (name,) = page.parts
    well, asked = page.parts[name], list[int]()

    def ask(look: Any) -> Any:
        asked.append(1)
        if len(asked) == 1:
            raise TooLateError("the time of another page was over")
        return well(look)

    monkeypatch.setitem(page.parts, name, ask)
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser:
        answer = browser.get("/plans")
        assert 'class="trouble"' not in answer.text
        assert len(asked) == 2
