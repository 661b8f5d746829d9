"""What plans and pages say of counts: never fewer than there are without saying so."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
from click.testing import CliRunner

from menzil import Menzil
from menzil.cli.main import main
from menzil.cli.top.views import head, workers
from menzil.console import Access, Console
from menzil.ops import looking
from menzil.ops.run import run
from menzil.watch import dead, overview
from tests.console.doing import planned
from tests.console.seat import Browser, served


@pytest.fixture
def seat(db: str) -> Iterator[Browser]:
    with served(Console(db, local=Access.admin("ada"))) as browser:
        yield browser


def test_plan_of_a_pause_counts_what_is_in_flight_without_a_limit(seat: Browser, db: str) -> None:
    """Of a channel without a limit the view of channels does not count."""
    with Menzil(db) as mq:
        for name, limit in (("free", None), ("narrow", 5)):
            mq.channel_set(name, max_concurrency=limit)
            mq.send_batch(name, [{}, {}, {}])
            mq.dequeue(2, 60, name)
    for name in ("free", "narrow"):
        assert "In flight now: 2." in planned(seat, "channel-pause", channel=name).page.words


def test_plan_of_a_purge_says_that_counting_stopped(seat: Browser, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking.load, "__defaults__", (4,))
    monkeypatch.setattr(looking, "CAP", 4)
    with Menzil(db) as mq:
        for name, number in (("few", 3), ("many", 9)):
            mq.channel_set(name)
            mq.send_batch(name, [{}] * number)
    few = planned(seat, "channel-purge", channel="few").page.words
    assert " 3 " in few
    assert "or more" not in few
    assert " 4 or more " in planned(seat, "channel-purge", channel="many").page.words


def test_overview_and_top_say_that_counting_dead_letters_stopped(
    seat: Browser, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Menzil(db) as mq:
        mq.channel_set("work")
        mq.send_batch("work", [{}] * 3)
        for message in mq.dequeue(3, 60, "work"):
            mq.fail(message, "boom", permanent=True)
    tile = r"Dead letters\s+([0-9+]+)"
    for most, said in ((4, "3"), (3, "3+")):
        monkeypatch.setattr(overview, "DEAD", most)
        assert re.search(tile, seat.get(f"/?window={most}h").words)[1] == said
        assert f"   dead {said}   " in head({**seat.get("/overview.json").json, "p95_ms": None})[0]


def test_charts_and_tiles_say_since_when_nothing_counts(seat: Browser, db: str) -> None:
    with Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("work")
        mq.send("work", {})
        assert "flow not counted" in seat.get("/").words, "no worker ever ran"
        conn.execute("update menzil.job set next_at = '-infinity'")
        conn.execute("call menzil.run_jobs()")
        conn.execute("update menzil.job set last_run_at = last_run_at - interval '5 min' where name = 'pulse'")
    page = seat.get("/?window=6h").words
    assert "Not counted since 20" in page
    assert "flow not counted" in page
    assert "deaths not counted" in page
    assert set(seat.get("/overview.json").json["rates"].values()) == {None}
    assert "Not counted since 20" in seat.get("/channels/work").words
    assert "In / out per minute – / –" in seat.get("/channels/work").words


def test_page_of_a_rare_cause_does_not_say_that_its_letters_were_redriven(
    seat: Browser, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Menzil(db) as mq:
        mq.channel_set("work")
        mq.send_batch("work", [{}] * 3)
        for message, error in zip(mq.dequeue(3, 60, "work"), ("apple", "apple", "fig"), strict=True):
            mq.fail(message, error, permanent=True)
    rare = seat.get("/dead.json").json["causes"][1]["cause_hash"]
    monkeypatch.setattr(dead, "EVERY", 1)
    monkeypatch.setattr(dead.causes, "__kwdefaults__", {**dead.causes.__kwdefaults__, "most": 1})
    page = seat.get(f"/dead/{rare}").words
    assert "1+ dead It is none of the 1 most frequent causes" in page
    assert "were redriven" not in page
    assert "3 dead letters" in (page := seat.get("/dead?endpoint=work").words)
    assert "There are more causes than these" in page
    assert "menzil dlq causes --endpoint work --limit 1 lists" in page, "the causes of this channel, as the page"
    assert "Failed ones now: at least 2" in planned_redrive(seat, monkeypatch)


def planned_redrive(seat: Browser, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("menzil.console.acts.plans.MOST_CAUSES", 1)
    return planned(seat, "plan-redrive", endpoint="work").page.words


def test_worker_of_all_endpoints_is_not_said_to_take_all_channels(seat: Browser, db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        for name, names in (("one", None), ("two", ["billing", "(endpoints)"])):
            conn.execute("select menzil.worker_hello(%s, 'host', 1, '0', %s)", (name, names))
    page = seat.get("/workers")
    assert "one alive host 1 all endpoints 0 of 1" in page.words
    assert "two alive host 1 billing , all endpoints 0 of 1" in page.words
    assert "/channels/~" not in page.text, "there is no channel of that name"
    with psycopg.connect(db) as conn:
        rows = workers().look(lambda op: run(conn, op)).rows
    assert [row["channels"] for row in rows] == ["all endpoints", "billing, all endpoints"]
    told = CliRunner().invoke(main, ["workers", "--dsn", db]).stdout
    assert "billing, all endpoints" in told


def test_python_of_a_send_says_when_it_rounds(seat: Browser, db: str) -> None:
    with Menzil(db) as mq:
        mq.channel_set("work")
    for body, rounds in (('{"a": 1.5, "b": 9007199254740993}', False), ('{"a": 0.12345678901234567890}', True)):
        page = planned(seat, "send", channel="work", payload=body).page.words
        assert ("Python rounds numbers of this body" in page) is rounds


def test_plan_that_has_ended_is_not_offered_to_run(seat: Browser, db: str) -> None:
    with Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("work")
        mq.send("work", {})
        conn.execute("select menzil.plan_create('cancel', '{\"channel\": \"work\"}')")
        pause = seat.get("/acts/plan-pause?plan=1")
        assert pause.status == 400
        assert "Plan 1 does not run: it is a draft." in pause.words
        assert "Run it" in seat.get("/acts/plan-run?plan=1").words
        conn.execute("select menzil.plan_stop(1)")
    page = seat.get("/acts/plan-run?plan=1")
    assert page.status == 400
    assert "Plan 1 was stopped, and does not run again." in page.words


def test_plan_of_a_test_says_that_an_open_circuit_holds_it(seat: Browser, db: str) -> None:
    with Menzil(db) as mq:
        mq.create_endpoint("hook", "http", {"url": "https://hook.example/"})
        assert "circuit" not in planned(seat, "endpoint-test", endpoint="hook").page.words.split("Command line")[0]
        mq.set_setting("circuit_breaker_threshold", "1")
        mq.send_batch("hook", [{}])
        for message in mq.dequeue(1, 60, "hook"):
            mq.fail(message, "HTTP 503")
    assert "Its circuit is not closed" in planned(seat, "endpoint-test", endpoint="hook").page.words
    assert "closed already" not in planned(seat, "endpoint-reset", endpoint="hook").page.words


def test_plan_of_a_size_counts_what_is_scheduled_and_says_what_it_does_not_know(
    seat: Browser, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"max_concurrency": "none", "release_count": "1", "interval": "0", "on_dead": "continue"}
    with Menzil(db) as mq:
        mq.channel_set("work")
        mq.send_batch("work", [{}] * 3)
        mq.send("work", {}, delay=3600)

    def told(size: int) -> str:
        return planned(seat, "channel-limits", channel="work", max_size=str(size), **limits).page.words

    assert "It holds 4: sends are refused until fewer than 4 are left." in told(4)
    assert "It holds" not in told(5)
    monkeypatch.setattr("menzil.console.acts.channel_limits.CAP", 2)
    assert "It holds 4 or more: sends are refused while it holds 5." in told(5)


def test_plan_of_a_rate_does_not_make_those_wait_that_may_go_at_once(seat: Browser, db: str) -> None:
    limits = {"max_concurrency": "none", "max_size": "none", "interval": "60", "on_dead": "continue"}
    with Menzil(db) as mq:
        mq.channel_set("work")
        mq.send_batch("work", [{}] * 5)

    def told(release_count: int) -> str:
        return planned(seat, "channel-limits", channel="work", release_count=str(release_count), **limits).page.words

    assert "take at least" not in told(5), "all of them fit into the first window"
    assert "The 5 that wait take at least 2 min." in told(2)


def test_plan_with_a_pace_does_not_count_what_is_due_later_as_achieved(seat: Browser, db: str) -> None:
    with Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("work")
        mq.send_batch("work", [{}] * 100)
        for message in mq.dequeue(100, 60, "work"):
            mq.complete(message)
        conn.execute("select menzil.plan_create('replay', '{\"channel\": \"work\"}', 1)")
        conn.execute("select menzil.plan_run(1)")
        conn.execute("select menzil.plan_step(1, 50)")
        page = seat.get("/plans/1").words
    done = re.search(r"Done (\d+) ", page)
    achieved = re.search(r"Achieved ([0-9.]+) per second", page)
    assert done is not None
    assert int(done[1]) >= 50
    assert achieved is None or float(achieved[1]) < 20, "of the 50, most are due in the next minute"


def test_plan_that_has_ended_is_not_ended_once_more(seat: Browser, db: str) -> None:
    with Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("work")
        mq.send("work", {})
        (message,) = mq.dequeue(1, 60, "work")
        mq.complete(message)
        conn.execute("select menzil.plan_create('replay', '{\"channel\": \"work\"}')")
        assert "dead letters" not in seat.get("/acts/plan-take-back?plan=1").words.split("Command line")[0]
        conn.execute("select menzil.plan_run(1)")
        while conn.execute("select status from menzil.plans").fetchone() != ("done",):
            conn.execute("select menzil.plan_step(1, 50)")
    page = seat.get("/acts/plan-stop?plan=1")
    assert page.status == 400
    assert "Plan 1 has ended already: it is done." in page.words
    assert "Plan 1 has ended. What it made is taken back." in seat.get("/acts/plan-take-back?plan=1").words
