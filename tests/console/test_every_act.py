"""Every act once by its form: what it says first, what it does, the line it leaves, the way back."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
import psycopg
import pytest

from menzil import Menzil
from menzil.cli.main import main
from menzil.console import Access, Console
from menzil.console.acts import all_acts
from menzil.embedded import Embedded
from tests.conftest import database
from tests.console.conftest import Full
from tests.console.doing import Planned, confirm, do, events, last_event, planned, undo_of
from tests.console.furnished import furnish
from tests.console.seat import Browser, served


@pytest.fixture(scope="module")
def desk(server: Embedded, _installed: str) -> Iterator[tuple[Browser, Full]]:
    """A furnished database that the tests of this file change, and an admin before it."""
    with database(server, "console_acts", _installed) as dsn:
        full = Full(dsn, furnish(dsn, history=False))
        with served(Console(dsn, local=Access.admin("ada"))) as browser:
            yield browser, full


@dataclass
class Case:
    """An act with its fields, the event it leaves, and the act that takes it back."""

    act: str
    given: dict[str, str] | Callable[[Full], dict[str, str]]
    event: str | None
    undo: str | None = None
    says: tuple[str, ...] = field(default=())

    def fields(self, full: Full) -> dict[str, str]:
        return self.given(full) if callable(self.given) else self.given


LIMITS = {"max_concurrency": "2", "max_size": "none", "release_count": "1", "interval": "0", "on_dead": "continue"}
CASES = [
    Case("message-retry-now", lambda full: {"id": str(full.ids.scheduled)}, "message.hurried"),
    Case("message-cancel", lambda full: {"id": str(full.ids.scheduled)}, "act.message-cancel", "message-replay"),
    Case("message-redrive", lambda full: {"id": str(full.ids.dead)}, "redrive", "message-cancel"),
    Case("message-replay", lambda full: {"id": str(full.ids.completed)}, "replay", "message-cancel", ("second time",)),
    Case("message-erase", lambda full: {"id": str(full.ids.completed)}, "message.erased", None, ("no undo",)),
    Case("channel-pause", {"channel": "billing"}, "channel.paused", "channel-resume"),
    Case("channel-resume", {"channel": "billing"}, "channel.resumed", "channel-pause"),
    Case(
        "channel-limits", {"channel": "billing", **LIMITS}, "channel.changed", "channel-limits",
        ("5 are in flight: 3 will finish, and nothing starts until fewer than 2 are.",),
    ),
    Case("channel-purge", {"channel": "mail"}, "channel.purged", None, ("100",)),
    Case("channel-release", {"channel": "reports"}, "channel.released"),
    Case("endpoint-disable", {"endpoint": "warehouse"}, "endpoint.disabled", "endpoint-enable"),
    Case("endpoint-enable", {"endpoint": "warehouse"}, "endpoint.enabled", "endpoint-disable"),
    Case("endpoint-reset", {"endpoint": "crm"}, None),
    Case("endpoint-test", {"endpoint": "warehouse"}, "act.endpoint-test", "message-cancel"),
    Case("endpoint-create", {"endpoint": "shop", "protocol": "http", "config": '{"url": "https://shop.example/in"}'},
         "endpoint.created", "endpoint-disable"),
    Case(
        "endpoint-alter",
        {"endpoint": "warehouse", "config": '{"url": "https://new.example/in"}', "retry_policy": '{"max_retries": 2}'},
        "endpoint.altered", "endpoint-alter", ("https://wms.example.com/in", "https://new.example/in"),
    ),
    Case("endpoint-rotate", {"endpoint": "crm"}, "endpoint.altered", "endpoint-rotate-finish"),
    Case("endpoint-rotate-finish", {"endpoint": "crm"}, "endpoint.altered"),
    Case(
        "schedule-create",
        {"schedule": "hourly", "cron": "0 * * * *", "time_zone": "Europe/Istanbul", "channel": "imports",
         "payload": '{"n": 1.10}', "priority": "2"},
        "schedule.created", "schedule-drop", ("Next slots:",),
    ),
    Case("schedule-pause", {"schedule": "tick"}, "schedule.paused", "schedule-resume"),
    Case("schedule-resume", {"schedule": "tick"}, "schedule.resumed", "schedule-pause"),
    Case("schedule-run", {"schedule": "tick"}, "act.schedule-run", "message-cancel"),
    Case("schedule-drop", {"schedule": "tick"}, "schedule.dropped", "schedule-create"),
    Case("setting-set", {"setting": "retry_base_delay", "value": "20"}, "setting.changed", "setting-set", ("10",)),
    Case("send", {"channel": "imports", "payload": '{"a": 1.50}', "priority": "3", "ordering_key": "it's"}, "act.send",
         "message-cancel", ("Menzil(dsn).send(",)),
    Case("publish", {"event_type": "order.paid", "payload": '{"order": 1, "country": "NL"}'}, "act.publish",
         None, ("crm",)),
    Case("plan-redrive", {"endpoint": "crm", "rate": "5", "note": "after the outage"}, "plan.created", "plan-run"),
    Case("plan-replay", {"channel": "mail", "since": "-2h", "status": "completed"}, "plan.created", "plan-run"),
    Case("plan-cancel", {"channel": "billing"}, "plan.created", "plan-run"),
    Case("plan-run", lambda full: {"plan": str(full.ids.plan)}, "plan.started", "plan-take-back"),
    Case("plan-pause", lambda full: {"plan": str(full.ids.plan)}, "plan.paused", "plan-run"),
    Case("plan-stop", lambda full: {"plan": str(full.ids.plan)}, "plan.stopped", "plan-take-back"),
    Case("plan-take-back", lambda full: {"plan": str(full.ids.plan)}, None),
]  # fmt: skip


def test_every_act_has_a_case() -> None:
    assert sorted(case.act for case in CASES) == sorted(all_acts())


def test_reference_names_every_act() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "console.md").read_text()
    assert [name for name in all_acts() if f"`{name}`" not in page] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.act)
def test_act_is_planned_done_and_written_down(desk: tuple[Browser, Full], case: Case) -> None:
    browser, full = desk
    given, before = case.fields(full), last_event(full.dsn)
    plan = planned(browser, case.act, **given)
    for words in case.says:
        assert words in plan.page.words
    assert events(full.dsn, before) == [], "a plan changes nothing"
    assert_is_a_command(plan.command)
    if plan.statements.strip():
        assert_runs(full.dsn, plan.statements)
    done = confirm(browser, plan)
    assert done.status == 200, done.words[:800]
    assert "nothing was done a second time" not in done.words
    found = events(full.dsn, before)
    assert {(actor.split()[0], via) for _, _, actor, via in found} <= {("ada", "console")}, found
    if case.event:
        assert case.event in [event for event, _, _, _ in found], found
    offered = undo_of(done)
    assert (offered[0] if offered else None) == case.undo
    again = browser.post(f"/acts/{case.act}/do", plan.fields())
    after = len(events(full.dsn, before))
    assert again.status in (303, 409), again.words[:300]
    assert after == len(found), "a second click does nothing"


def assert_runs(dsn: str, statements: str) -> None:
    """The SQL that is shown is SQL that runs; nothing of it stays."""
    with psycopg.connect(dsn) as conn:
        conn.execute(statements)  # type: ignore[arg-type]
        conn.rollback()


def assert_is_a_command(line: str) -> None:
    """The command that is shown is one that the command line takes; it is read and not run."""
    words = shlex.split(line)
    if words[0] == "psql":
        assert words[1:3] == ["$MENZIL_DSN", "-c"]
        return
    assert words.pop(0) == "menzil"
    command: click.Command = main
    name: str | None = "menzil"
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(click.Context(command), words)
        assert found is not None
        command = found
    command.make_context(name, words)


TOKENS = {role: f"{role}-token" for role in ("viewer", "reader", "operator", "admin")}


@pytest.fixture(scope="module")
def closed(desk: tuple[Browser, Full]) -> Iterator[int]:
    """A console with a login, before the same database."""
    lines = [f"{role}:{role}:{hashlib.sha256(token.encode()).hexdigest()}" for role, token in TOKENS.items()]
    with served(Console(desk[1].dsn, tokens=lines)) as browser:
        yield browser.port


def logged_in(port: int, role: str) -> Browser:
    browser = Browser(port)
    page = browser.get("/login")
    csrf = re.search(r'name="csrf" value="([^"]*)"', page.text)
    browser.post("/login", {"token": TOKENS[role], **({"csrf": csrf[1]} if csrf else {})})
    assert browser.get("/workers").status == 200
    return browser


@pytest.mark.parametrize("role", ["viewer", "reader"])
def test_who_only_looks_is_refused_every_act(closed: int, desk: tuple[Browser, Full], role: str) -> None:
    browser, before = logged_in(closed, role), last_event(desk[1].dsn)
    for act in all_acts():
        assert browser.get(f"/acts/{act}").status == 403, act
        assert browser.post(f"/acts/{act}", {"channel": "billing"}).status == 403, act
        assert browser.post(f"/acts/{act}/do", {"plan": "x"}).status == 403, act
    for path in ("/endpoints/crm", "/dead", "/plans", "/schedules", "/settings", "/send", "/events", "/lake"):
        page = browser.get(path)
        assert page.status == 200
        assert "/acts/" not in page.text, path
    assert events(desk[1].dsn, before) == []


def test_operator_has_no_act_of_an_admin(closed: int) -> None:
    browser = logged_in(closed, "operator")
    for name, act in all_acts().items():
        assert browser.get(f"/acts/{name}").status == (403 if act.role == "admin" else 200), name
    assert "setting-set" not in browser.get("/settings").text


def test_form_from_elsewhere_is_refused_by_every_act(closed: int, desk: tuple[Browser, Full]) -> None:
    browser, before = logged_in(closed, "admin"), last_event(desk[1].dsn)
    for name in all_acts():
        form = browser.get(f"/acts/{name}?edit=1")
        csrf = {"csrf": form.field("csrf")}
        for step in (f"/acts/{name}", f"/acts/{name}/do"):
            assert browser.post(step, {"csrf": "forged"}).status == 403, name
            assert browser.post(step, {}).status == 403, name
            strange = {"Origin": "https://evil.example", "Sec_Fetch_Site": "cross-site", "Sec-Fetch-Site": ""}
            assert browser.post(step, csrf, **strange).status == 403, name
        assert browser.post(f"/acts/{name}/do", csrf).status == 403, "the token of a form does not confirm"
    assert events(desk[1].dsn, before) == []


def test_read_only_console_has_no_route_to_any_act(desk: tuple[Browser, Full]) -> None:
    full = desk[1]
    with served(Console(full.dsn, local=Access.admin("ada"), read_only=True)) as browser:
        for name in all_acts():
            assert browser.get(f"/acts/{name}").status == 404
            assert browser.post(f"/acts/{name}", {}).status == 403
            assert browser.post(f"/acts/{name}/do", {}).status == 403
        for path in ("/endpoints", "/endpoints/crm", "/dead", f"/plans/{full.ids.plan}", "/schedules", "/settings"):
            assert "/acts/" not in browser.get(path).text


@pytest.mark.parametrize("act", ["plan-redrive", "plan-replay", "plan-cancel"])
def test_plan_without_a_filter_is_refused(desk: tuple[Browser, Full], act: str) -> None:
    browser, full = desk
    before = last_event(full.dsn)
    form = browser.get(f"/acts/{act}")
    page = browser.post(f"/acts/{act}", {"csrf": form.field("csrf"), "note": "all of it"})
    assert page.status == 400
    assert "The filter is empty." in page.words
    assert events(full.dsn, before) == []


def test_many_messages_are_confirmed_by_typing_their_number(desk: tuple[Browser, Full]) -> None:
    browser, full = desk
    with Menzil(full.dsn) as mq:
        mq.channel_set("flood")
        mq.send_batch("flood", [{"n": number} for number in range(1_001)])
    plan = planned(browser, "channel-purge", channel="flood")
    wrong = confirm(browser, plan, typed="1000")
    assert wrong.status == 409
    assert "The number you typed is not the number of the plan." in wrong.words
    done = confirm(browser, planned(browser, "channel-purge", channel="flood"), typed="1,001")
    assert "1,001 messages of flood cancelled." in done.words


def test_undo_brings_the_old_state_back(desk: tuple[Browser, Full]) -> None:
    browser, full = desk
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        ask = "select max_concurrency, release_interval_ms, on_dead from menzil.channels where name = 'imports'"
        before = conn.execute(ask).fetchone()
        for act, given in (
            ("channel-limits", {"channel": "imports", **LIMITS, "max_concurrency": "7", "interval": "60"}),
            ("setting-set", {"setting": "retry_max_delay", "value": "500"}),
        ):
            undo = undo_of(do(browser, act, **given))
            assert undo is not None
            do(browser, undo[0], **undo[1])
        assert conn.execute(ask).fetchone() == before
        value = conn.execute("select value from menzil.settings where name = 'retry_max_delay'").fetchone()
        assert value == ("300",)


def test_new_secret_is_shown_once_and_nowhere_else(desk: tuple[Browser, Full]) -> None:
    browser, _ = desk
    plan = planned(browser, "endpoint-rotate", endpoint="slack")
    assert "HIDDEN" in plan.statements
    answer = browser.post("/acts/endpoint-rotate/do", plan.fields())
    done = browser.get(answer.headers["Location"])
    secret = re.search(r"whsec_[A-Za-z0-9+/=]{40,}", done.text)
    assert secret is not None
    for path in ("/endpoints/slack", "/endpoints/slack.json", "/audit", "/audit.json"):
        assert secret[0] not in browser.get(path).text, path
    assert secret[0] not in browser.get(answer.headers["Location"]).text, "shown this once"


def test_secret_that_is_typed_is_not_repeated(desk: tuple[Browser, Full]) -> None:
    browser, _ = desk
    typed = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY3"
    config = f'{{"url": "https://chat.example.com/hook", "signing": {{"secret": "{typed}"}}}}'
    plan = planned(browser, "endpoint-alter", endpoint="slack", config=config, retry_policy="null")
    shown = re.sub(r'name="plan" value="[^"]*"', "", plan.page.text)
    assert typed not in shown
    assert "(secret)" in plan.page.words
    form = {**plan.fields(), "csrf": re.findall(r'name="csrf" value="([^"]*)"', plan.page.text)[-1], "edit": "1"}
    assert typed in browser.post("/acts/endpoint-alter", form).text, "the form still has what was written"


def test_checked_messages_become_one_plan(desk: tuple[Browser, Full]) -> None:
    browser, full = desk
    with Menzil(full.dsn) as mq:
        ids = [mq.send("imports", {"n": number}) for number in range(3)]
    page = browser.get("/acts/plan-cancel?" + "&".join(f"ids={number}" for number in ids))
    assert page.status == 200
    assert "3 by id" in page.words
    done = confirm(browser, Planned("plan-cancel", page))
    with psycopg.connect(full.dsn) as conn:
        row = conn.execute("select filter -> 'ids' from menzil.plans order by id desc limit 1").fetchone()
    assert row == (ids,), done.words


def test_plan_is_drafted_run_watched_and_taken_back(desk: tuple[Browser, Full]) -> None:
    browser, full = desk
    with Menzil(full.dsn) as mq:
        mq.channel_set("recovering")
        mq.send_batch("recovering", [{"n": number} for number in range(30)])
        for message in mq.dequeue(30, 60, ["recovering"]):
            mq.fail(message, "boom", permanent=True)
    drafted = do(browser, "plan-redrive", endpoint="recovering", note="after the repair")
    number = re.search(r"/plans/(\d+)", drafted.text)
    assert number is not None
    page = browser.get(f"/plans/{number[1]}")
    assert "Redrives 30 dead letters of recovering." in page.words
    assert f"/acts/plan-run?plan={number[1]}" in page.text
    do(browser, "plan-run", plan=number[1])
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        conn.execute("select menzil.plan_step(%s)", (number[1],))
        page = browser.get(f"/plans/{number[1]}")
        assert "30 waiting" in page.words, "the outcome so far"
        done = do(browser, "plan-take-back", plan=number[1])
        assert "30 messages taken back" in done.words
        row = conn.execute("select count(*) from menzil.dlq where endpoint_name = 'recovering' and status = 'failed'")
        assert row.fetchone() == (30,), "failed again"
    assert browser.get(f"/plans/{number[1]}.json").json["outcome"] == {"taken_back": 30}
