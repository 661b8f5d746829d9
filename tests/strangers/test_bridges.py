"""Which calls for the same bridge wait for one that is left open: those that the page names, and no other."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from menzil.embedded import Embedded
from tests.conftest import database
from tests.strangers.bridges import (
    ALL,
    BEGUN,
    BRIDGE,
    BRIDGES,
    HEARTBEAT,
    NAME,
    NEW,
    NEW_PARTITION,
    OPENED,
    PARTITION,
    PROCESS,
    SEEK,
    TAKE,
)
from tests.strangers.words import Stranger

CALLS = {
    "take": TAKE,
    "take elsewhere": TAKE.replace("'s'", "'other'"),
    "begin": BEGUN,
    "begin elsewhere": BEGUN.replace("'s'", "'other'"),
    "begin new": BEGUN.replace("'s'", "'new'"),
    "seek": "select menzil.bridge_seek('bridge{n}', 's', '9-0')",
    "seek elsewhere": "select menzil.bridge_seek('bridge{n}', 'other', '9-0')",
    "open": OPENED,
    "open another": OPENED.replace("one", "two"),
    "heartbeat": HEARTBEAT,
    "heartbeat of another": HEARTBEAT.replace("one", "two"),
    "close": "select menzil.bridge_close('bridge{n}', 'one')",
    "close another": "select menzil.bridge_close('bridge{n}', 'two')",
    "create": NEW,
    "create another": NEW.replace("bridge{n}", "another"),
    "alter": "select menzil.bridge_alter('bridge{n}', null, '{own}')",
    "pause": "select menzil.bridge_pause('bridge{n}')",
    "resume": "select menzil.bridge_resume('bridge{n}')",
    "drop": "select menzil.bridge_drop('bridge{n}')",
    "list": "select * from menzil.bridges, menzil.bridge_positions",
    "health": "select * from menzil.health_check()",
}
_ADMIN = {"create", "alter", "pause", "resume", "seek", "seek elsewhere", "drop"}
WAIT = {
    PARTITION: {"take", "begin", "seek", "drop"},
    NEW_PARTITION: {"begin new", "drop"},
    PROCESS: {"open", "heartbeat", "close", "drop"},
    NAME: {"create"},
    BRIDGE: _ADMIN,
    SEEK: {"take", "begin", *_ADMIN},
    ALL: set(CALLS) - {"create another", "list", "health"},
}


@pytest.fixture(scope="module")
def mine(server: Embedded, _installed: str) -> Iterator[str]:
    with database(server, "bridges", _installed) as dsn:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("select menzil.channel_set('plain')")
            conn.execute("select menzil.create_event_type('thing.done')")
        yield dsn


def _waits(conn: psycopg.Connection, text: str) -> bool:
    conn.execute("begin")
    try:
        conn.execute(text.encode())
    except psycopg.errors.LockNotAvailable:
        return True
    except psycopg.Error:
        return False  # refused at once, because another process was quicker or there is no such bridge yet
    finally:
        conn.execute("rollback")
    return False


@pytest.mark.parametrize("stranger", BRIDGES.strangers, ids=lambda stranger: stranger.name)
def test_only_these_calls_for_the_same_bridge_wait(mine: str, stranger: Stranger):
    def filled(text: str) -> str:
        return text.replace("{n}", str(BRIDGES.strangers.index(stranger))).replace("{own}", "plain")

    with psycopg.connect(mine, autocommit=True) as conn, psycopg.connect(mine) as held:
        for text in (*stranger.before[:3], CALLS["begin elsewhere"], CALLS["open another"], *stranger.before[3:]):
            if stranger.before:
                conn.execute(filled(text).encode())
        for text in stranger.sql:
            held.execute(filled(text).encode())
        # Only these two sessions are here: a call that waits at all waits for the one that is held.
        conn.execute("set lock_timeout = '20ms'")
        found = {name for name, text in CALLS.items() if _waits(conn, filled(text))}
        held.rollback()
    assert found == WAIT[stranger.waits]
