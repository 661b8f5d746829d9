"""Sends that were undone do not fill the queue, with any transaction of another session open."""

from __future__ import annotations

import psycopg
import pytest


@pytest.mark.parametrize(
    "stranger",
    ["insert into mine values (1)", "select txid_current()", "select count(*) from menzil.queue", "select 1"],
)
def test_queue_is_not_full_of_undone_sends(db: str, stranger: str):
    """A million ids given out and undone, which is the limit of the whole queue, beside an open transaction."""
    with psycopg.connect(db, autocommit=True) as conn, psycopg.connect(db, autocommit=True) as other:
        conn.execute("create table mine (n integer)")
        conn.execute("select menzil.channel_set('plain')")
        conn.execute("select menzil.send_batch('plain', array_fill('{}'::jsonb, array[10]))")
        other.execute("begin isolation level repeatable read")
        other.execute(stranger)
        conn.execute("begin")
        conn.execute("select menzil.send_batch('plain', array_fill('{}'::jsonb, array[1000]))")
        conn.execute("select count(nextval('menzil.message_id')) from generate_series(1, 1100000)")
        conn.execute("rollback")
        for n in range(300):
            assert conn.execute("select menzil.send('plain', %s::jsonb)", [str(n)]).fetchone(), "refused"
        assert conn.execute("select count(*) from menzil.queue").fetchone() == (310,)
        other.execute("rollback")
