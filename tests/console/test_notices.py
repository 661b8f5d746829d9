"""Notices: what a page says about its subject is no trouble of the page itself."""

from __future__ import annotations

import psycopg

from menzil import Menzil
from menzil.console import Access, Console
from tests.console.seat import served


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
