"""What viewers share: one question for all of them, and a budget that open pages keep to."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menzil.console import Access, Console, shared
from menzil.console.budget import Budget
from menzil.console.desk import Desk
from menzil.console.page import Answer, Shown
from menzil.console.pages import all_pages
from menzil.console.pages.overview import holds
from menzil.console.parts import is_soon, reads
from menzil.console.questions import Common
from menzil.console.rules import Rules
from menzil.console.shared import GOOD_FOR, OPENED, Shared
from menzil.model.redact import Redactor
from menzil.ops import looking, watch, why
from menzil.ops.op import Op
from menzil.ops.run import run
from tests.console.conftest import Full
from tests.console.furnished import EXACT
from tests.console.seat import Browser, served


@dataclass
class Told:
    """An answer as parts give it."""

    number: int
    spent: float = 0.0
    trouble: Any = None
    saved: float = 0.0
    holds: float = 0.0


@pytest.fixture
def ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are good for as long as a test lasts: two seconds may pass on a busy machine."""
    monkeypatch.setattr(shared, "GOOD_FOR", 600)


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are old at once."""
    monkeypatch.setattr(shared, "GOOD_FOR", 0)


@pytest.fixture
def ask() -> Iterator[Callable[[], Future[Told]]]:
    """Answers with how many were asked for so far."""
    asked: list[int] = []

    def work() -> Told:
        asked.append(1)
        return Told(len(asked))

    with ThreadPoolExecutor(1) as threads:
        yield lambda: threads.submit(work)


def broke() -> Budget:
    """A budget without room, for ever."""
    made = Budget(rate=0, most=1)
    made.spend(5)
    return made


def ended(future: Future[Told]) -> int:
    return future.result(60).number


@pytest.mark.usefixtures("ever")
def test_viewers_at_the_same_time_are_one_question() -> None:
    seats, asked, began = Shared(), list[int](), threading.Event()

    def work() -> int:
        asked.append(1)
        began.wait(60)
        return len(asked)

    with ThreadPoolExecutor(8) as threads:
        found = [seats.get("key", lambda: threads.submit(work)) for _ in range(50)]
        began.set()
        assert {one.future.result(60) for one in found} == {1}
        assert seats.get("key", lambda: threads.submit(work)).future.result(60) == 1, "still good"
        assert seats.get("other", lambda: threads.submit(work)).future.result(60) == 2
        seats.forget()
        assert seats.get("key", lambda: threads.submit(work)).future.result(60) == 3
    assert GOOD_FOR == 2


@pytest.mark.usefixtures("never")
def test_open_page_gets_what_is_known_while_the_budget_has_no_room(
    ask: Callable[[], Future[Told]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "DEAR", 0)
    poor, rich = Shared(broke()), Shared(Budget(rate=0, most=1))
    assert ended(poor.get("key", ask).future) == 1, "a page that nobody knows yet is asked for"
    assert ended(poor.get("key", ask, 60).future) == 1
    assert ended(poor.get("key", ask, 0).future) == 2, "too old to be shown"
    assert ended(rich.get("key", ask, 60).future) == 3
    assert ended(rich.get("key", ask, 60).future) == 4


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize(("spent", "saved"), [(1.0, 0.0), (0.0, 1.0)])
def test_only_a_dear_answer_waits_for_the_budget(
    ask: Callable[[], Future[Told]], monkeypatch: pytest.MonkeyPatch, spent: float, saved: float
) -> None:
    monkeypatch.setattr(shared, "SHARE", 1e9)
    monkeypatch.setattr(shared, "CHEAP_AGE", 0)
    poor = Shared(broke())

    def dear() -> Future[Told]:
        made: Future[Told] = Future()
        made.set_result(Told(7, spent=spent, saved=saved))
        return made

    assert ended(poor.get("dear", dear, 60).future) == 7
    assert ended(poor.get("dear", ask, 60).future) == 7, "it waits, though another page asked the dear question"
    assert ended(poor.get("cheap", ask, 60).future) == 1
    assert ended(poor.get("cheap", ask, 60).future) == 2, "a cheap one does not"


@pytest.mark.usefixtures("never")
def test_what_is_told_soon_waits_for_the_budget_only_after_two_dear_answers(
    ask: Callable[[], Future[Told]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "SHARE", 1e9)
    poor = Shared(broke())

    def costs(seconds: float) -> Callable[[], Future[Told]]:
        made: Future[Told] = Future()
        made.set_result(Told(7, spent=seconds))
        return lambda: made

    for spent in (60, 0.02, 60, 0.09, 60):  # a new connection, or a busy machine, makes one of them slow
        assert ended(poor.get("key", costs(spent), 60, soon=True).future) == 7
    assert ended(poor.get("key", ask, 60, soon=True).future) == 1
    for _ in range(2):
        assert ended(poor.get("dear", costs(60), 60, soon=True).future) == 7
    assert ended(poor.get("dear", ask, 60, soon=True).future) == 7, "it waits"
    for _ in range(2):
        assert ended(poor.get("usual", costs(0.02), 60).future) == 7
    assert ended(poor.get("usual", ask, 60).future) == 7, "as an answer that may be told later does"


def test_open_page_of_a_message_looks_often_enough() -> None:
    """It promises 6 seconds: an answer that was good just now, a look, and two for the way."""
    page = next(page for page in all_pages() if page.path == "/messages/{id}")
    assert GOOD_FOR + page.live <= 4
    assert [name for name, part in page.parts.items() if is_soon(part)] == ["message", "why"]


@pytest.mark.usefixtures("never")
def test_dear_answer_is_good_for_longer(ask: Callable[[], Future[Told]]) -> None:
    seats = Shared(Budget(rate=0, most=1))

    def dear() -> Future[Told]:
        made: Future[Told] = Future()
        made.set_result(Told(7, spent=60))
        return made

    assert ended(seats.get("key", dear).future) == 7
    assert ended(seats.get("key", ask).future) == 7, "good for twenty minutes"


@pytest.mark.usefixtures("never")
def test_answer_that_holds_is_not_asked_for_again(ask: Callable[[], Future[Told]]) -> None:
    seats = Shared()

    def chart() -> Future[Told]:
        made: Future[Told] = Future()
        made.set_result(Told(7, holds=600))
        return made

    assert ended(seats.get("key", chart).future) == 7
    assert ended(seats.get("key", ask).future) == 7, "the step of the chart goes on for long"


def test_chart_holds_for_a_twelfth_of_its_step_and_a_minute_at_most() -> None:
    assert [holds({"step_s": step}) for step in (60, 300, 1800, 86_400)] == [5, 25, 60, 60]
    assert holds({"step_s": 60}) <= OPENED, "the chart of an hour is as fresh as the rest of a page that is opened"


def test_page_is_as_old_as_its_oldest_part_beyond_what_it_holds_for() -> None:
    now = datetime.now(UTC)

    def age(tiles: float, chart: float) -> float:
        answers = {
            "now": Answer(None, now - timedelta(seconds=tiles), 1),
            "curve": Answer(None, now - timedelta(seconds=chart), 1, holds=60),
        }
        return round(Shown(answers, {}, {}, Access.admin("ada")).age)

    assert age(tiles=3, chart=50) == 3, "a chart that holds does not make the page older"
    assert age(tiles=3, chart=100) == 40, "one that was to be asked for again does"
    assert age(tiles=0, chart=1) == 0


@pytest.mark.usefixtures("never")
def test_answer_before_stands_in_for_one_that_takes_long_but_trouble_does_not() -> None:
    seats, slow = Shared(), Future[Told]()
    first, second = Future[Told](), Future[Told]()
    first.set_result(Told(1))
    second.set_result(Told(2, trouble="locked"))
    assert seats.get("key", lambda: first).known is None
    found = seats.get("key", lambda: second)
    assert found.future is second
    assert found.known is first
    assert seats.get("key", lambda: slow).known is None, "the one before was trouble"
    assert seats.get("key", lambda: first).future is slow, "it is under way"


def test_budget_fills_with_time_and_owes_no_more_than_its_most() -> None:
    assert Budget().has_room()
    assert not broke().has_room()
    quick = Budget(rate=1e9, most=1)
    quick.spend(1e6)
    assert quick.has_room()


def test_questions_of_several_pages_are_asked_once() -> None:
    common, asked, began = Common(), list[str](), threading.Event()
    op = why.channel_state()

    def answer(op: Op[Any]) -> Any:
        asked.append(op.text)
        began.wait(60)
        return [{"channel": "a"}]

    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(common.ask, op, answer, 60) for _ in range(8)]
        began.set()
        answers = [one.result(60) for one in found]
    assert len(asked) == 1
    assert [rows for rows, _ in answers] == [[{"channel": "a"}]] * 8
    others = [other for _, other in answers if other is not None]
    assert len(others) == 7, "seven are told of when it is"
    assert all(other.took > 0 for other in others), "and what it cost"
    answers[0][0][0]["channel"] = "changed by a page"
    assert answers[1][0] == [{"channel": "a"}]
    common.ask(looking.now(), answer, 60)
    common.ask(looking.now(), answer, 60)
    assert asked.count(looking.now().text) == 2, "not a question that pages share"


def test_failure_of_another_page_is_not_ours() -> None:
    common, began, go = Common(), threading.Event(), threading.Event()

    def fail(op: Op[Any]) -> Any:
        began.set()
        go.wait(60)
        raise RuntimeError("cut")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(common.ask, watch.metrics(), fail, 60)
        assert began.wait(60)
        own: Op[Any] = watch.metrics()
        second = threads.submit(common.ask, own, lambda op: ["mine"], 60)
        go.set()
        with pytest.raises(RuntimeError):
            first.result(60)
        assert second.result(60)[0] == ["mine"]


@pytest.fixture
def counted(full: Full, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Browser, Counter[str]]]:
    """A console, and how often it asked each statement."""
    asked: Counter[str] = Counter()

    def count(conn: Any, op: Op[Any], *, own: bool = False) -> Any:
        asked[op.text] += 1
        return run(conn, op, own=own)

    monkeypatch.setattr("menzil.console.database.run", count)
    monkeypatch.setattr("menzil.console.questions.TIMES", 1e6)
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser:
        yield browser, asked


@pytest.mark.usefixtures("ever")
def test_pages_that_look_at_the_same_ask_once(counted: tuple[Browser, Counter[str]]) -> None:
    browser, asked = counted
    for path in ("/channels", "/channels?sort=oldest", "/channels?held=1", "/workers", "/turns"):
        assert 'class="trouble"' not in browser.get(path).text
    assert asked[why.channel_state().text] == 1
    for path in ("/?window=1h", "/?window=6h", "/?window=90d&unknown=word", "/health"):
        assert 'class="trouble"' not in browser.get(path).text
    assert asked[watch.metrics().text] == 1
    assert asked[watch.health_check().text] == 1


def test_every_part_says_which_words_it_reads() -> None:
    for page in all_pages():
        for name, part in page.parts.items():
            assert not reads(part, "no such word"), f"{page.path} {name}: a word that nobody reads makes it ask again"


def test_page_says_how_old_it_is_once_that_matters(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "GOOD_FOR", 600)
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser:
        fresh = browser.get("/plans")
        monkeypatch.setattr("menzil.console.page.datetime", Later)
        old = browser.get("/plans")
        same = browser.get("/plans", X_Menzil_Live="1", If_None_Match=str(old.headers["ETag"]))
    assert "s old" not in fresh.words
    assert re.search(r"as of [0-9:]{8} · \d+ ms , 10\d s old", old.words), old.words[:300]
    assert same.status == 304
    assert re.fullmatch(r"[0-9:]{8} \d+ 10\d", str(same.headers["X-Menzil-As-Of"]))


class Later(datetime):
    """A clock that runs 100 s ahead."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime.now(tz) + timedelta(seconds=100)


@pytest.mark.usefixtures("ever")
def test_an_answer_is_not_shared_after_the_rules_for_secrets_changed(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = Rules("redact", Redactor(["password"]))

    async def now(*_: object) -> Rules:
        return rules

    monkeypatch.setattr(Desk, "rules", now)
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser:
        path = f"/messages/{full.ids.exact}.json"
        assert EXACT in browser.get(path).text
        rules = Rules("redact", Redactor(["password", "amount"]))
        assert EXACT not in browser.get(path).text
