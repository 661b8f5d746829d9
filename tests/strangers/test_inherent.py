"""What PostgreSQL makes every session wait for, and what must wait: nothing fails, and everything goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from tests.strangers.stage import Stage
from tests.strangers.table import INHERENT
from tests.strangers.words import Stranger


@pytest.mark.slow
@pytest.mark.parametrize("stranger", INHERENT, ids=lambda stranger: stranger.name)
def test_everything_goes_on_when_it_ends(stage: Stage, stranger: Stranger):
    found = stage.survive(stranger)
    assert not found, "\n".join(found)


def _endpoint(conn: psycopg.Connection) -> tuple[int, int]:
    """An endpoint that is to be disabled when it says 410, a message of it in flight, and one that waits."""
    config = '{"url": "https://example.com/", "auto_disable_on_gone": true}'
    conn.execute(f"select menzil.create_endpoint('gone', 'http', '{config}'), menzil.channel_set('plain')")
    conn.execute("select menzil.send('gone', '{}')")
    lease = conn.execute(
        "select id, num_attempts from menzil.message_dequeue(60000, 1, p_endpoints => true)"
    ).fetchone()
    assert lease is not None
    conn.execute("select menzil.send('gone', '{}'), menzil.send('plain', '{}')")
    return lease


@pytest.mark.parametrize(
    "held",
    [
        "select * from menzil.endpoints where name = 'gone' for update",
        """select menzil.alter_endpoint('gone', '{"url": "https://example.com/", "auto_disable_on_gone": true}')""",
        "select * from menzil.message_dequeue(60000, 1, '{plain}')",  # folds the news of the endpoint's lane as well
        "select * from menzil.message_dequeue(60000, 1, p_endpoints => true)",
    ],
)
def test_settle_of_410_waits_for_no_one_and_next_one_disables(db: str, held: str):
    with psycopg.connect(db, autocommit=True) as conn, psycopg.connect(db, autocommit=True) as stranger:
        lease = _endpoint(conn)
        conn.execute("set lock_timeout = '1s'")
        stranger.execute("begin")
        stranger.execute(held)
        gone = "select menzil.message_fail(%s, %s, '[PERMANENT] [DISABLE] HTTP 410: gone')"
        assert conn.execute(gone, lease).fetchone() == ("dead",)
        enabled = "select enabled from menzil.channels where name = 'gone'"
        assert conn.execute(enabled).fetchone() == (True,)
        stranger.execute("rollback")
        again = "select id, num_attempts from menzil.message_dequeue(60000, 1, p_endpoints => true)"
        second = conn.execute(again).fetchone() or conn.execute(again).fetchone()
        assert conn.execute(gone, second).fetchone() == ("dead",)
        assert conn.execute(enabled).fetchone() == (False,)


def test_two_cleanups_beside_a_reader_are_not_told_of_a_deadlock(db: str):
    """Both have read the archive and want it alone; each gives up, and the next call drops the month."""
    clean = "select menzil.cleanup_old_archive_partitions()"
    with ExitStack() as stack:
        reader, *cleaners = [stack.enter_context(psycopg.connect(db, autocommit=True)) for _ in range(4)]
        reader.execute("select menzil._make_archive_month('2020-01-01 00:00+00')")
        reader.execute("begin")
        reader.execute("select count(*) from menzil.message")
        with ThreadPoolExecutor(3) as pool:
            for _ in range(5):
                assert list(pool.map(lambda conn: conn.execute(clean).fetchone(), cleaners)) == [(0,)] * 3
        reader.execute("rollback")
        assert reader.execute(clean).fetchone() == (1,)
