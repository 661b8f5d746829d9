"""What the short way to the server must do as well as a cursor does."""

from __future__ import annotations

import gc
import threading
import weakref

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import menzil
from menzil.ops import connecting, upkeep
from menzil.ops.run import run
from tests.sql.clock import until

#: More often than a statement goes unprepared.
OFTEN = 5


def prepared(mq: menzil.Menzil) -> list[str]:
    pool = mq._own_pool()
    conn = pool.take()
    try:
        return [name for (name,) in conn.execute("select name from pg_prepared_statements order by name")]
    finally:
        pool.give_back(conn)


def test_what_is_asked_often_is_prepared_unless_it_must_not(mq: menzil.Menzil, db: str) -> None:
    for number in range(OFTEN + 2):
        mq.send("billing", number)
    assert len(prepared(mq)) == 1
    with menzil.Menzil(db, prepare=False) as plain:
        for number in range(OFTEN + 2):
            plain.send("billing", number)
        assert prepared(plain) == []
    assert len(mq.dequeue(100)) == 2 * (OFTEN + 2)


def test_more_than_the_socket_takes_at_once_arrives_whole(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.set_setting('max_payload_size', '67108864')")
    text = "ä€" * 4_000_000
    mq.send("billing", {"text": text})
    (message,) = mq.dequeue()
    assert message.payload == {"text": text}


def test_a_connection_that_is_closed_is_not_kept_in_memory(db: str) -> None:
    conn = connecting.connect(db, connecting.options(db, prepare=True))
    connecting.configure(conn)
    assert run(conn, upkeep.handshake(), own=True).installed > 0
    gone = weakref.ref(conn)
    conn.close()
    del conn
    gc.collect()
    assert gone() is None


def test_a_text_with_a_nul_is_refused_and_not_cut_off(db: str) -> None:
    with menzil.Menzil(db, dumps=lambda _: '"a\0b"') as mq:
        mq.channel_set("billing")
        with pytest.raises(menzil.InvalidValueError, match="NUL"):
            mq.send("billing", "a")
        assert mq.dequeue() == []


def test_a_dsn_that_names_another_encoding_does_not_change_how_texts_travel(db: str) -> None:
    with menzil.Menzil(make_conninfo(db, client_encoding="latin1")) as mq:
        mq.channel_set("billing")
        mq.send("billing", "Grüße")
        (message,) = mq.dequeue()
        assert message.payload == "Grüße"


def test_a_server_process_that_ends_in_mid_call_is_an_error_and_the_next_call_works(mq: menzil.Menzil, db: str) -> None:
    mq.send("billing", 0)
    with psycopg.connect(db, autocommit=True) as other:
        other.execute("begin")
        other.execute("lock table menzil.message in access exclusive mode")
        errors: list[Exception] = []

        def send() -> None:
            try:
                mq.send("billing", 1)
            except Exception as error:
                errors.append(error)

        sender = threading.Thread(target=send)
        sender.start()
        kill = """
            select pg_terminate_backend(pid) from pg_stat_activity
             where wait_event_type = 'Lock' and datname = current_database()"""
        until(lambda: bool(other.execute(kill).fetchall()), 60)
        sender.join(60)
        other.execute("rollback")
    assert [type(error) for error in errors] == [menzil.ConnectionFailedError]
    assert mq.send("billing", 2) > 0
    assert [message.payload for message in mq.dequeue(10)] == [0, 2]


def test_an_error_leaves_the_connection_fit_for_the_next_call(mq: menzil.Menzil) -> None:
    for _ in range(OFTEN + 2):
        with pytest.raises(menzil.MenzilError) as caught:
            mq.send("nowhere", 1)
        assert caught.value.sqlstate
    assert mq.send("billing", 1) > 0
