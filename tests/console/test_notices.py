"""What single pages say: notices about their subject, and who holds which leases."""

from __future__ import annotations

import psycopg

from menzil import Menzil
from menzil.console import Access, Console
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


def test_page_of_workers_tells_what_each_has_leased(seat: Browser, full: Full) -> None:
    with psycopg.connect(full.dsn) as conn:
        row = conn.execute(
            "select count(*) from menzil.queue where status = 'processing' and worker = 'batch-1/99'"
        ).fetchone()
    assert row is not None
    assert row[0] >= 5
    page = seat.get("/workers").words
    assert f"batch-1/99 {row[0]} " in page.split("Leases by worker")[1].split("Served by no worker")[0]
