"""Every act once by its form: what it says first, what it does, the line it leaves, the way back."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import make_conninfo

from menzil import Menzil
from menzil.cli.main import main
from menzil.console import Access, Console
from menzil.console.acts import all_acts
from menzil.embedded import Embedded
from tests.conftest import database
from tests.console.cases import CASES, Case
from tests.console.conftest import Full
from tests.console.doing import Planned, confirm, do, events, last_event, planned, undo_of
from tests.console.furnished import furnish
from tests.console.seat import Browser, served
from tests.console.standing import HISTORY, difference, standing


@dataclass(frozen=True)
class Three:
    """One furnished database and two copies: for the console, for the statements that it shows, for its commands."""

    full: Full
    by_sql: str
    by_command: str

    def everywhere(self, statements: str) -> None:
        for dsn in (self.full.dsn, self.by_sql, self.by_command):
            with psycopg.connect(dsn, autocommit=True) as conn:
                conn.execute(statements)

    def newest_plan(self) -> int:
        with psycopg.connect(self.full.dsn) as conn:
            row = conn.execute("select max(id) from menzil.plans").fetchone()
            assert row is not None
            return int(row[0])


@pytest.fixture(scope="module")
def three(server: Embedded, _installed: str) -> Iterator[Three]:
    with ExitStack() as stack:
        dsn = stack.enter_context(database(server, "console_acts", _installed))
        full = Full(dsn, furnish(dsn, history=False))
        copies = [stack.enter_context(database(server, f"console_acts_{n}", "console_acts")) for n in (1, 2)]
        yield Three(full, *copies)


@contextmanager
def role_of(dsn: str, *of: str) -> Iterator[str]:
    """A role in these roles, and nothing else: how it connects."""
    name = f"console_{of[-1]}"
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"create role {name} login password 'x' in role {', '.join(of)}")
        try:
            yield make_conninfo(dsn, user=name, password="x")
        finally:
            conn.execute(f"drop role {name}")


@pytest.fixture(scope="module")
def desk(three: Three) -> Iterator[tuple[Browser, Full]]:
    """A furnished database that the tests of this file change, and an admin before it.

    The console reads and acts with the roles that the page about its deployment names.
    """
    with (
        role_of(three.full.dsn, "menzil_monitor", "menzil_pipeline") as reads,
        role_of(three.full.dsn, "menzil_admin") as acts,
        served(Console(reads, acts_dsn=acts, local=Access.admin("ada"))) as browser,
    ):
        yield browser, three.full


def test_every_act_has_a_case() -> None:
    assert sorted(case.act for case in CASES) == sorted(all_acts())


def test_reference_names_every_act() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "console.md").read_text()
    assert [name for name in all_acts() if f"`{name}`" not in page] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.act)
def test_act_is_planned_done_written_down_and_taken_back(
    desk: tuple[Browser, Full], three: Three, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, full = desk
    if case.first:
        three.everywhere(case.first.replace("{dead}", str(full.ids.dead)))
    given = {name: value.replace("{plan}", str(three.newest_plan())) for name, value in case.fields(full.ids).items()}
    before, was = last_event(full.dsn), standing(full.dsn)
    plan = planned(browser, case.act, **given)
    for words in case.says:
        assert words in plan.page.words
    assert events(full.dsn, before) == [], "a plan changes nothing"
    done = confirm(browser, plan)
    assert done.status == 200, done.words[:800]
    assert "nothing was done a second time" not in done.words
    found = events(full.dsn, before)
    assert {(actor.split()[0], via) for _, _, actor, via in found} <= {("ada", "console")}, found
    if case.event:
        assert case.event in [event for event, _, _, _ in found], found
    again = browser.post(f"/acts/{case.act}/do", plan.fields())
    assert again.status in (303, 409), again.words[:300]
    assert len(events(full.dsn, before)) == len(found), "a second click does nothing"
    does_the_same(three, plan, monkeypatch)

    undo, after = undo_of(done), undo_of(done, "button")
    assert (undo[0] if undo else None, after[0] if after else None) == (case.undo, case.after)
    if undo is not None:
        back = planned(browser, undo[0], **undo[1])
        assert confirm(browser, back).status == 200
        left = difference(was, standing(full.dsn), {*HISTORY, *case.leaves})
        assert not left, left
        does_the_same(three, back, monkeypatch)


def does_the_same(three: Three, plan: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statements and the command that a plan shows bring copies of the database to where the console brought it."""
    with psycopg.connect(three.by_sql, autocommit=True) as conn:
        for statement in plan.statements.splitlines():
            conn.execute(statement)
    for line in plan.command.split(" && "):
        typed(three.by_command, line, monkeypatch)
    here = standing(three.full.dsn)
    for dsn, which in ((three.by_sql, plan.statements), (three.by_command, plan.command)):
        other = difference(here, standing(dsn))
        assert not other, (which, other)


def typed(dsn: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a line as a shell would."""
    words = shlex.split(line)
    if words[0] == "psql":
        assert words[1:3] == ["$MENZIL_DSN", "-c"]
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(words[3])
        return
    assert words.pop(0) == "menzil"
    if words[:2] == ["endpoint", "test"]:
        words += ["--timeout", "0.01s"]  # it waits for a worker, and here is none
    monkeypatch.setenv("MENZIL_DSN", dsn)
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == (1 if "test" in words else 0), (line, answer.output, answer.exception)


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
