"""Programs send with a token, as the plan of a send by hand shows it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlencode

import psycopg
import pytest

from menzil.console import Console
from menzil.console.tokens import make
from tests.console.seat import Answer, Browser, served

TOKENS = {role: make(role, role) for role in ("reader", "operator")}


@pytest.fixture
def desk(db: str) -> Iterator[Browser]:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('mail'), menzil.create_event_type('paid')")
        conn.execute("select menzil.subscribe('paid', 'mail')")
    with served(Console(db, tokens=[line for _, line in TOKENS.values()])) as browser:
        yield browser


def ask(desk: Browser, act: str, form: dict[str, str], role: str = "operator") -> Answer:
    return desk.post(f"/acts/{act}.json", form, Authorization=f"Bearer {TOKENS[role][0]}", Origin="", Sec_Fetch_Site="")


def sent(db: str) -> list[tuple[object, ...]]:
    with psycopg.connect(db) as conn:
        return conn.execute("select id, payload::text, priority from menzil.queue order by id").fetchall()


def test_a_program_sends_and_publishes_with_a_token_and_the_audit_names_it(desk: Browser, db: str) -> None:
    answer = ask(desk, "send", {"channel": "mail", "payload": '{"n": 1.10}', "priority": "7"})
    number = answer.json["id"]
    assert (answer.status, sent(db)) == (200, [(number, '{"n": 1.10}', 7)])
    assert ask(desk, "publish", {"event_type": "paid", "payload": "{}"}).json == {"messages": 1}
    with psycopg.connect(db) as conn:
        acts = conn.execute(
            "select event_type, actor, via from menzil.event_log where event_type like 'act.%' order by id"
        )
        assert acts.fetchall() == [(f"act.{act}", "operator (as postgres)", "console") for act in ("send", "publish")]


@pytest.mark.parametrize(
    ("act", "form", "role", "status", "sentence"),
    [
        ("send", {"channel": "mail", "prioritiy": "7"}, "operator", 400, "no field 'prioritiy'"),
        ("send", {"channel": "mall", "payload": "{}"}, "operator", 400, "mall"),
        ("send", {"channel": "mail", "payload": "{"}, "operator", 400, "body"),
        ("send", {"channel": "mail", "payload": "[NaN]"}, "operator", 400, "NaN is no JSON number"),
        ("send", {"channel": "mail", "payload": '"\\ud800"'}, "operator", 400, "half a character, \\ud800"),
        ("send", {"payload": "{}"}, "operator", 400, "Channel"),
        ("send", {"channel": "mail", "payload": "1", "delay": "x"}, "operator", 400, "number"),
        ("send", {"channel": "mail"}, "reader", 403, "needs the role operator"),
        ("channel-purge", {"channel": "mail"}, "operator", 404, "no such act for programs"),
    ],
)
def test_what_a_program_gets_wrong_is_told_and_sends_nothing(
    desk: Browser, db: str, act: str, form: dict[str, str], role: str, status: int, sentence: str
) -> None:
    answer = ask(desk, act, form, role)
    assert answer.status == status
    assert sentence in answer.json["error"]
    assert sent(db) == []


def test_a_field_that_is_there_twice_is_refused(desk: Browser, db: str) -> None:
    token = {"Authorization": f"Bearer {TOKENS['operator'][0]}", "Content-Type": "application/x-www-form-urlencoded"}
    answer = desk.ask("POST", "/acts/send.json", b"channel=mail&payload=1&payload=2", token)
    assert (answer.status, answer.json["error"]) == (400, "The field 'payload' is there twice.")
    assert sent(db) == []


def test_a_cookie_is_no_token_and_a_wrong_token_is_refused(desk: Browser, db: str) -> None:
    """Browsers send cookies for other sites, so what a cookie opens must ask for the token of a form."""
    assert desk.post("/login", {"token": TOKENS["operator"][0]}).status == 303
    assert desk.post("/acts/send.json", {"channel": "mail", "payload": "{}"}).status == 401
    assert desk.post("/acts/send.json", {"channel": "mail"}, Authorization="Bearer wrong").status == 401
    assert sent(db) == []


def test_the_line_of_the_plan_runs_in_a_shell_as_it_is_shown(desk: Browser, db: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    assert desk.post("/login", {"token": TOKENS["operator"][0]}).status == 303
    body = '{"who": "O\'Neil & <co> \\u00e9 100%", "n": 0.10}'
    plan = desk.get(f"/acts/send?{urlencode({'channel': 'mail', 'payload': body})}")
    shown = re.search(r"<code[^>]*>(curl .*?)</code>", plan.text, re.DOTALL)
    assert shown, plan.words
    token = {"MENZIL_CONSOLE_TOKEN": TOKENS["operator"][0], "PATH": "/usr/bin:/bin"}
    done = subprocess.run(unescape(shown[1]), shell=True, env=token, capture_output=True, text=True, check=True)
    ((number, payload, _),) = sent(db)
    assert json.loads(done.stdout) == {"id": number}
    assert json.loads(str(payload)) == json.loads(body)


def test_a_console_that_only_reads_has_no_acts_for_programs(db: str) -> None:
    with served(Console(db, tokens=[TOKENS["operator"][1]], read_only=True)) as desk:
        assert ask(desk, "send", {"channel": "mail", "payload": "{}"}).status == 403


def test_a_program_is_told_to_try_again_when_the_database_cannot_take_it(desk: Browser, db: str) -> None:
    with psycopg.connect(db) as other:
        other.execute("lock table menzil.line in access exclusive mode")
        assert ask(desk, "send", {"channel": "mail", "payload": "{}"}).status == 503
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('mail', p_max_size => 1)")
        conn.execute("select menzil.send('mail', '{}')")
    full = ask(desk, "send", {"channel": "mail", "payload": "{}"})
    assert full.status == 503, full.text
