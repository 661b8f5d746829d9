"""Acts: a form, its plan, one transaction that says who did it, and never twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from menzil import Menzil
from menzil.console import Access, Console
from menzil.console.acting import GOOD_FOR
from menzil.console.signing import Signer
from tests.console.doing import planned
from tests.console.seat import Answer, Browser, served


@pytest.fixture
def shop(db: str) -> str:
    with Menzil(db) as mq:
        mq.channel_set("billing", max_concurrency=3)
        mq.send("billing", {"invoice": 1})
    return db


@pytest.fixture
def seat(shop: str) -> Iterator[Browser]:
    with served(Console(shop, local=Access.operator("ada"), secret="of the tests")) as browser:
        yield browser


def form(page: Answer) -> dict[str, str]:
    return {"csrf": page.field("csrf"), "plan": page.field("plan")}


def log(dsn: str) -> list[tuple[str, ...]]:
    with psycopg.connect(dsn) as conn:
        return conn.execute("select event_type, entity_id, actor, via from menzil.event_log order by id").fetchall()


def test_plan_says_what_happens_and_does_nothing(seat: Browser, shop: str) -> None:
    page = seat.get("/acts/channel-pause?channel=billing")
    assert page.status == 200
    assert "Channel billing accepts messages and hands none out." in page.words
    assert "menzil channel pause billing" in page.words
    assert "select menzil.channel_pause('billing'::text);" in page.words
    assert [row[0] for row in log(shop)] == ["channel.created"]


def test_confirmed_plan_is_done_once_and_names_the_actor(seat: Browser, shop: str) -> None:
    page = seat.get("/acts/channel-pause?channel=billing")
    answer = seat.post("/acts/channel-pause/do", form(page))
    assert answer.status == 303
    done = seat.get(answer.headers["Location"])
    assert "Channel billing holds its messages." in done.words
    assert 'href="/acts/channel-resume?channel=billing"' in done.text, "the way back"
    kind, entity, actor, via = log(shop)[-1]
    assert (kind, entity, via) == ("channel.paused", "billing", "console")
    assert actor.split(" ")[0] == "ada"
    assert "paused" in seat.get("/channels/billing").words, "an act is seen at once, not after two seconds"


def test_second_click_of_the_same_form_does_nothing(seat: Browser, shop: str) -> None:
    page = seat.get("/acts/channel-pause?channel=billing")
    with ThreadPoolExecutor(8) as hands:
        answers = list(hands.map(lambda _: seat.post("/acts/channel-pause/do", form(page)), range(8)))
    assert {(answer.status, answer.headers["Location"]) for answer in answers} == {
        (303, answers[0].headers["Location"])
    }
    assert [row[0] for row in log(shop)].count("channel.paused") == 1


def test_second_click_that_another_process_gets_does_nothing(seat: Browser, shop: str) -> None:
    page = seat.get("/acts/channel-pause?channel=billing")
    assert seat.post("/acts/channel-pause/do", form(page)).status == 303
    with served(Console(shop, local=Access.operator("ada"), secret="of the tests")) as twin:
        twin.cookies[f"menzil-{twin.port}"] = seat.cookies[f"menzil-{seat.port}"]
        first = twin.get("/acts/channel-pause/done?key=of-the-other-process").words
        assert "This form was sent before" not in first
        assert "another process did it" in first, "a proxy may lead to it after the first click"
        answer = twin.post("/acts/channel-pause/do", form(page))
        assert answer.status == 303
        assert "nothing was done a second time" in twin.get(answer.headers["Location"]).words
    assert [row[0] for row in log(shop)].count("channel.paused") == 1


def test_act_that_is_refused_leaves_the_plan_and_its_reason(seat: Browser, shop: str) -> None:
    page = seat.get("/acts/channel-pause?channel=nowhere")
    assert page.status == 400
    assert "There is no channel named 'nowhere'." in page.words
    page = seat.get("/acts/channel-pause?channel=billing")
    with psycopg.connect(shop) as other:
        other.execute("select menzil.channel_set('billing', 9)")
        answer = seat.post("/acts/channel-pause/do", form(page))
        assert answer.status == 409
        assert "locked" in answer.words
        other.rollback()
    assert [row[0] for row in log(shop)] == ["channel.created"]
    again = seat.post("/acts/channel-pause/do", form(page))
    assert again.status == 303, "what was refused was not done, so the same form may be sent again"


@pytest.mark.parametrize("what", ["csrf", "plan"])
def test_form_of_another_session_is_refused(seat: Browser, shop: str, what: str) -> None:
    mine, other = seat.get("/acts/channel-pause?channel=billing"), Browser(seat.port)
    theirs = other.get("/acts/channel-pause?channel=billing")
    mixed = form(mine) | {what: form(theirs)[what]}
    assert seat.post("/acts/channel-pause/do", mixed).status in (400, 403)
    assert seat.post("/acts/channel-pause/do", form(mine) | {what: ""}).status in (400, 403)
    assert seat.post("/acts/channel-resume/do", form(mine)).status == 403, "a token is bound to its act"
    assert [row[0] for row in log(shop)] == ["channel.created"]


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_form_of_another_site_is_refused_even_with_its_token(seat: Browser, shop: str, headers: dict[str, str]) -> None:
    page = seat.get("/acts/channel-pause?channel=billing")
    assert seat.post("/acts/channel-pause/do", form(page), **headers).status == 403
    assert [row[0] for row in log(shop)] == ["channel.created"]


def test_old_plan_is_made_again(seat: Browser, shop: str) -> None:
    page = seat.get("/acts/channel-pause?channel=billing")
    signer = Signer("of the tests")
    session = signer.open("session", seat.cookies[f"menzil-{seat.port}"])["id"]
    purpose = f"plan channel-pause {session}"
    sealed = signer.open(purpose, page.field("plan"))
    old = signer.seal(purpose, sealed | {"made": time.time() - GOOD_FOR - 5})
    answer = seat.post("/acts/channel-pause/do", form(page) | {"plan": old})
    assert answer.status == 409
    assert "older than 10 minutes" in answer.words
    assert [row[0] for row in log(shop)] == ["channel.created"]
    assert seat.post("/acts/channel-pause/do", form(answer)).status == 303


def test_plan_whose_values_changed_meanwhile_is_made_again(seat: Browser, shop: str) -> None:
    """A form holds every limit: confirmed as it is, it would take back what another person changed."""
    limits = {"max_concurrency": "2", "max_size": "none", "release_count": "1", "interval": "0", "on_dead": "continue"}
    plan = planned(seat, "channel-limits", channel="billing", **limits)
    assert "After a dead letter" not in plan.page.words
    with psycopg.connect(shop) as other:
        other.execute("select menzil.channel_set('billing', 3, p_on_dead := 'block')")
    answer = seat.post("/acts/channel-limits/do", plan.fields())
    assert answer.status == 409
    assert "is not what it was when the plan was made" in answer.words
    assert "After a dead letter block continue" in answer.words, "what it would take back is said now"
    assert on_dead(shop) == "block"
    assert seat.post("/acts/channel-limits/do", form(answer)).status == 303, "who has seen it may do it"
    assert on_dead(shop) == "continue"
    assert seat.post("/acts/channel-limits/do", form(answer)).status == 303, "a second click is no outdated plan"


def on_dead(dsn: str) -> str:
    with psycopg.connect(dsn) as conn:
        row = conn.execute("select on_dead from menzil.channels where name = 'billing'").fetchone()
        assert row is not None
        return str(row[0])


def test_texts_in_fields_stay_texts(seat: Browser) -> None:
    page = seat.get("/acts/channel-pause?channel=%3Cimg+src%3Dx%3E%E2%80%AE")
    assert page.status == 400
    assert "<img src=x>" not in page.text
    assert "\u202e" not in page.text


@pytest.mark.parametrize(
    ("body", "sentence"),
    [("NaN", "NaN is no JSON number"), ('{"total": -Infinity}', "no JSON number"), ('"\\ud800"', "half a character")],
)
def test_body_that_is_no_json_is_refused_before_there_is_a_plan(seat: Browser, body: str, sentence: str) -> None:
    page = seat.get("/acts/send?channel=billing&edit=1")
    answer = seat.post("/acts/send", {"csrf": page.field("csrf"), "channel": "billing", "payload": body})
    assert answer.status == 400
    assert sentence in answer.words


def test_schedule_that_never_fires_is_refused_with_a_sentence(seat: Browser) -> None:
    page = seat.get("/acts/schedule-create?edit=1")
    asked = {"schedule": "leap", "cron": "0 3 30 2 *", "time_zone": "UTC", "channel": "billing", "payload": "1"}
    answer = seat.post("/acts/schedule-create", {"csrf": page.field("csrf"), "priority": "0", **asked})
    assert answer.status == 400
    assert "'0 3 30 2 *' never comes true. Name a day that exists in that month." in answer.words


@pytest.mark.parametrize(
    ("seconds", "shown"), [("1234567", "1234567s"), ("123456.789", "123456.789s"), ("0.00002", "0.00002s"), ("5", "5s")]
)
def test_command_of_a_send_has_every_digit_of_its_times(seat: Browser, seconds: str, shown: str) -> None:
    plan = planned(seat, "send", channel="billing", payload="1", delay=seconds, expires_in="99999999")
    assert plan.command == f"menzil send billing 1 --delay {shown} --expires 99999999s"
