"""What the benchmark says about the console is about every page, beside a queue that the engine itself would accept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import looks, stock
from bench.crew import Crew
from bench.looks import LIVE
from bench.sections import console_cost, console_locked, console_viewers, watch_cost
from bench.server import Server, connected
from bench.session import Session
from bench.stock import Size, Stock, one
from menzil.console.pages import all_pages
from menzil.embedded import Embedded

TINY = Size(400, 1_000, 40, 20, 1, 1)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session(server: Embedded) -> Iterator[Session]:
    made = Server(server.dsn, own=True)
    with Crew(0) as crew:
        yield Session(made, crew, quick=True)
    made.drop()


@pytest.fixture(scope="module")
def stocked(session: Session) -> tuple[str, Stock]:
    dsn = session.server.database()
    with connected(dsn) as conn:
        return dsn, stock.build(conn, TINY)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    monkeypatch.setattr(session, "figures", [])
    monkeypatch.setattr(stock, "QUICK", TINY)
    for section, sizes in (
        (console_cost, {"SIZES": TINY, "TIMES": 1}),
        (console_viewers, {"SIZES": TINY, "TURNS": 1, "SECONDS": 1.0}),
        (console_locked, {"TABLES": 1}),
        (watch_cost, {"TURNS": 1, "ROUND": 2}),
    ):
        for name, value in sizes.items():
            monkeypatch.setattr(section, name, {True: value})


def test_a_stock_is_a_queue_that_the_engine_knows(stocked: tuple[str, Stock]) -> None:
    dsn, found = stocked
    with connected(dsn) as conn:
        assert one(conn, "select count(*) from menzil.queue where status = 'pending'") == TINY.waiting + 1
        assert one(conn, "select count(*) from menzil.archive") == TINY.archived + TINY.dead
        assert one(conn, "select count(*) from menzil.dlq where status = 'failed'") == TINY.dead
        assert one(conn, "select status from menzil.health_check() where check_name = 'places'") == "ok"
        assert one(conn, "select sent - gone from menzil._told_totals()") >= TINY.waiting
        assert one(conn, "select sum(sent) from menzil.pulse_total where channel_id = 0") == TINY.waiting
        assert one(conn, "select menzil.message_status(%s)", found.ids["archived"]) is not None


def test_every_page_is_visited_without_trouble(stocked: tuple[str, Stock]) -> None:
    dsn, found = stocked
    visits = looks.visits(found)
    assert {visit.page.path for visit in visits} == {page.path for page in all_pages()}
    with looks.connection(dsn) as conn:
        costs = {visit.name: looks.cost(conn, visit, 1) for visit in visits}
    assert {name: cost.trouble for name, cost in costs.items() if cost.trouble} == {}
    assert all(cost.least > 0 and min(cost.wall) > 0 for cost in costs.values())


def test_pages_and_their_fragments_have_a_budget_each(session: Session) -> None:
    console_cost.run(session)
    names = [figure.name for figure in session.figures]
    assert sum(name.startswith(LIVE) and name.endswith(", folded") for name in names) == sum(
        page.live > 0 for page in all_pages()
    )
    assert sum(name.endswith(", just sent") for name in names) == sum(name.endswith(", folded") for name in names)
    assert sum(name.startswith("draft") for name in names) == len(console_cost.DRAFTS)
    assert all(figure.target is not None and figure.value > 0 for figure in session.figures)


def test_pages_are_opened_while_a_table_that_they_read_is_locked(session: Session) -> None:
    console_locked.run(session)
    found = {figure.name: figure for figure in session.figures}
    assert found["pages that did not answer 200"].value == 0
    assert found["pages that left a part out without a word"].value == 0
    assert found["slowest page beside a locked table"].value > 0.05


def test_viewers_and_a_worker_share_a_server(session: Session) -> None:
    console_viewers.run(session)
    twins = [figure for figure in session.figures if figure.name.endswith("of a twin of the database")]
    found = {figure.name.split(" beside")[0]: figure for figure in session.figures if figure not in twins}
    assert found["messages a second"].value > 0
    assert found["messages a second"].target is not None
    assert [figure.value > 0 and figure.target is None for figure in twins] == [True, True]
    assert found["pages with trouble"].beside["of"] > 10


def test_what_watching_costs_is_compared_with_a_database_without_it(session: Session) -> None:
    watch_cost.run(session)
    assert len(session.figures) == 9
    assert all(figure.value > 0 and figure.beside["µs without"] > 0 for figure in session.figures)
