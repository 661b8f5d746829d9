"""Secrets, redacted keys and tokens are on no page, in no twin and in no line that the console logs."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.console import Console
from menzil.console.acts import all_acts
from menzil.console.pages import all_pages
from menzil.console.texts import slug
from menzil.console.tokens import make
from menzil.telemetry.logs import JsonLines, TextLines
from tests.canary.canaries import HIDDEN, Kind
from tests.canary.fixtures import Planted, planted
from tests.console.seat import Browser, served

__all__ = ["planted"]

pytestmark = pytest.mark.slow

#: For each pattern a statement that finds what its place can be.
PLACES = {
    "/channels/{name}": "select name from menzil.channels",
    "/endpoints/{name}": "select name from menzil.endpoints",
    "/messages/{id}": "select id::text from menzil.queue union select id::text from menzil.archive",
    "/dead/{hash}": "select distinct cause_hash from menzil.dlq",
    "/plans/{id}": "select id::text from menzil.plans",
}
ROLES = ("viewer", "operator")
REST = "schedule=canary-nightly&event_type=canary.paid"


def addresses(dsn: str) -> dict[str, list[str]]:
    """Every page and every twin of everything that is in the database, by pattern."""
    found: dict[str, list[str]] = {}
    with psycopg.connect(dsn) as conn:
        for page in all_pages():
            places = [""]
            if "{" in page.path:
                places = [slug(row[0]) for row in conn.execute(PLACES[page.path].encode()).fetchall()]
            for pattern in (page.path, page.json_path):
                found[pattern] = [re.sub(r"\{\w+\}", place, pattern) for place in places]
        row = conn.execute("select min(id), max(id) from menzil.archive").fetchone()
        assert row is not None
        found["/compare"] = [f"/compare?a={row[0]}&b={row[1]}", f"/compare?redaction={row[0]}"]
        found["/compare.json"] = [f"/compare.json?a={row[0]}&b={row[1]}"]
    return found


@contextmanager
def logged() -> Iterator[dict[str, StringIO]]:
    """All that loggers of this process say, in both formats."""
    streams = {"text": StringIO(), "json": StringIO()}
    root, hooks = logging.getLogger(), []
    names = ("", "menzil", "menzil.console", "uvicorn", "uvicorn.error", "uvicorn.access", "psycopg")
    before = {name: logging.getLogger(name).level for name in names}
    for name, formatter in (("text", TextLines()), ("json", JsonLines())):
        hook = logging.StreamHandler(streams[name])
        hook.setFormatter(formatter)
        root.addHandler(hook)
        hooks.append(hook)
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield streams
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
        for hook in hooks:
            root.removeHandler(hook)


def test_canaries_are_on_no_page_in_no_twin_and_in_no_log_of_the_console(planted: Planted) -> None:
    planted.work()
    canaries = planted.canaries
    with psycopg.connect(planted.dsn, autocommit=True) as conn:
        conn.execute("select menzil.plan_create('redrive', '{\"all\": true}', 5, 'after the outage')")
    found = addresses(planted.dsn)
    assert all(found.values()), "each pattern has something to look at"
    tokens = {role: make(role, role) for role in ROLES}
    for role, (token, line) in tokens.items():
        canaries.of(Kind.SECRET, f"token of the {role}", token)
        canaries.of(Kind.SECRET, f"digest of the {role}", line.split(":")[2])
    secret = canaries.of(Kind.SECRET, "secret of the sessions")
    metrics = canaries.of(Kind.SECRET, "token of the metrics")
    console = Console(
        planted.dsn, tokens=[line for _, line in tokens.values()], secret=secret, acts_dsn=planted.dsn,
        metrics_token=hashlib.sha256(metrics.encode()).hexdigest(),
    )  # fmt: skip
    with logged() as streams:
        with served(console) as browser:
            payloads = set()
            for role, (token, _) in tokens.items():
                here = Browser(browser.port)
                assert here.post("/login", {"token": token}).status == 303
                hidden = HIDDEN if role != "viewer" else HIDDEN | {Kind.PAYLOAD}
                for pattern, paths in found.items():
                    for path in paths:
                        answer = here.get(path)
                        assert answer.status == (403 if role == "viewer" and "/compare" in path else 200), path
                        canaries.clean(answer.text, f"{path} of the {role}", hidden)
                        canaries.clean(str(answer.headers), f"headers of {path}", HIDDEN)
                        if canaries.found(answer.text, {Kind.PAYLOAD}):
                            payloads.add(pattern)
            assert {"/messages/{id}", "/messages/{id}.json"} <= payloads, "otherwise this test would prove nothing"
            _acts(planted, here)
            _refused(planted, browser, metrics, tokens["operator"][0])
        _unreachable(planted)
    for name, stream in streams.items():
        canaries.clean(stream.getvalue(), f"the log as {name}", HIDDEN | {Kind.PAYLOAD})


def _acts(planted: Planted, here: Browser) -> None:
    """Forms and plans of acts, filled in as pages link to them."""
    with psycopg.connect(planted.dsn) as conn:
        names = [row[0] for row in conn.execute("select name from menzil.endpoints").fetchall()]
    for act in all_acts():
        for name in names if act.startswith("endpoint-") else ["canary-handler"]:
            words = f"channel={name}&endpoint={name}&setting=redact&id=1&plan=1&{REST}"
            for path in (f"/acts/{act}?{words}", f"/acts/{act}?{words}&edit=1"):
                answer = here.get(path)
                assert answer.status in (200, 400, 403), path
                planted.canaries.clean(answer.text, path, HIDDEN)


def _refused(planted: Planted, browser: Browser, metrics: str, token: str) -> None:
    """What is answered to programs, and to those who are not let in."""
    right = {"Authorization": f"Bearer {metrics}"}
    for answer in (
        browser.ask("GET", "/metrics", headers=right),
        browser.ask("GET", "/workers.json", headers={"Authorization": f"Bearer {token}"}),
        browser.ask("GET", "/workers.json", headers=right),
        browser.post("/login", {"token": metrics, "next": "/"}),
        browser.get("/nowhere"),
    ):
        planted.canaries.clean(answer.text, "a refusal", HIDDEN)


def _unreachable(planted: Planted) -> None:
    """A console whose database is gone, or does not take its password."""
    wrong = planted.canaries.of(Kind.SECRET, "a password that is wrong")
    for dsn in (make_conninfo(planted.dsn, port="1"), make_conninfo(planted.dsn, password=wrong)):
        token, line = make("ada", "admin")
        with served(Console(dsn, tokens=[line])) as browser:
            browser.post("/login", {"token": token})
            for path in ("/", "/workers", "/workers.json", "/acts/channel-pause?channel=canary-handler"):
                planted.canaries.clean(browser.get(path).text, path, HIDDEN)
