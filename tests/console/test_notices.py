"""What single pages say: notices about their subject, and who holds which leases."""

from __future__ import annotations

import json
import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import psycopg
import pytest

from menzil import Menzil
from menzil.console import Access, Console, words
from tests.console.conftest import Full
from tests.console.seat import Browser, served


def test_draft_with_an_old_count_says_so_and_no_part_is_missing(db: str) -> None:
    with Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("billing")
        conn.execute("""select menzil.plan_create('redrive', '{"channel": "billing"}')""")
        conn.execute("update menzil.plan set created_at = created_at - interval '11 min'")
        with served(Console(db, local=Access.admin("ada"))) as browser:
            page = browser.get("/plans/1")
    assert "The count is older than 10 minutes." in page.words
    assert 'class="notice"' in page.text
    assert 'class="trouble"' not in page.text


@pytest.mark.parametrize(
    ("kind", "asked", "leads"),
    [
        ("redrive", {"channel": "billing"}, {"endpoint": "billing"}),
        ("redrive", {"all": True}, {"all": "1"}),
        ("cancel", {"channel": "billing"}, {"channel": "billing"}),
        ("replay", {"channel": "billing", "status": "completed"}, {"channel": "billing", "status": "completed"}),
    ],
)
def test_draft_with_an_old_count_can_be_made_again(
    db: str, kind: str, asked: dict[str, object], leads: dict[str, str]
) -> None:
    with Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("billing")
        conn.execute("select menzil.plan_create(%s, %s::jsonb, null, 'again & again')", (kind, json.dumps(asked)))
        conn.execute("update menzil.plan set created_at = created_at - interval '11 min'")
        with served(Console(db, local=Access.admin("ada"))) as browser:
            page = browser.get("/plans/1").text
            (link,) = re.findall(rf'href="(/acts/plan-{kind}[^"]*)">Make it again', page)
            form = browser.get(unescape(link))
            refused = browser.get("/acts/plan-run?plan=1")
    assert dict(parse_qsl(urlsplit(unescape(link)).query)) == leads | {"note": "again & again"}
    assert form.status == 200
    assert f"A plan is drafted: {kind}" in form.words
    assert "is older than 10 minutes. Make the plan again, and look at the new count." in refused.words


def test_time_that_has_come_is_not_called_the_next_one(db: str) -> None:
    with Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("billing")
        number = mq.send("billing", {"order": 1}, delay=3600)
        (taken,) = [mq.send("billing", {"order": 2})]
        assert [one.id for one in mq.dequeue(1, 60, ["billing"], worker="late/1")] == [taken]
        conn.execute("update menzil.lease set unlock_at = now() - interval '5 min'")
        with served(Console(db, local=Access.admin("ada"))) as browser:
            waits = browser.get(f"/messages/{number}").words
            workers = browser.get("/workers").words
            overview = browser.get("/").text
    assert re.search(r"since [0-9: A-Za-z]+ UTC, .* · until [0-9: A-Za-z]+ UTC, in 60 min", waits), waits[:400]
    assert re.search(r"late/1 1 .* 5 min ago ran out", workers), workers[:600]
    assert '<a href="/workers">leases</a>' in overview


def test_hint_reads_as_a_sentence_and_a_command_as_it_is_typed() -> None:
    assert words.sentence("name a channel, or say that you mean all") == "Name a channel, or say that you mean all."
    assert words.sentence("It is asked for again in a moment.") == "It is asked for again in a moment."
    assert words.sentence("menzil worker") == "menzil worker"
    assert words.sentence("select menzil.adopt()") == "select menzil.adopt()"
    assert words.sentence("") == ""


def test_page_of_workers_tells_what_each_has_leased(seat: Browser, full: Full) -> None:
    with psycopg.connect(full.dsn) as conn:
        row = conn.execute(
            "select count(*) from menzil.queue where status = 'processing' and worker = 'batch-1/99'"
        ).fetchone()
    assert row is not None
    assert row[0] >= 5
    page = seat.get("/workers").words
    assert f"batch-1/99 {row[0]} " in page.split("Leases by worker")[1].split("Served by no worker")[0]


def test_page_without_menzil_says_so_once(fresh_db: str) -> None:
    with served(Console(fresh_db, local=Access.admin("ada"))) as browser:
        for path in ("/", "/messages", "/channels/billing"):
            page = browser.get(path)
            assert page.text.count('class="trouble"') == 1, path
            assert "Run `menzil migrate`" in page.words, path
            assert page.text.count("<h1") == 1, path
