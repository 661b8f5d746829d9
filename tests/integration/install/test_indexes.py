"""Indexes that a release adds to a database at work: built while its senders go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import scalar_row

from menzil.install import Pace, migrate
from tests.conftest import adopt
from tests.integration.install.copies import copied

LOOKUP = ("line_news", "event_entity", "schedule_slot_message")


def ask(conn: psycopg.Connection[Any], query: str) -> list[Any]:
    with conn.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query).fetchall()


def missing(conn: psycopg.Connection[Any]) -> list[str]:
    return ask(conn, "select name from menzil._missing_indexes()")


def invalid(conn: psycopg.Connection[Any]) -> list[str]:
    return ask(
        conn,
        """select c.relname from pg_class c join pg_index i on i.indexrelid = c.oid
            where c.relnamespace = 'menzil'::regnamespace and not i.indisvalid order by 1""",
    )


@pytest.fixture(scope="session")
def left(databases: tuple[str, str]) -> Iterator[str]:
    """A database with messages, events and slots, and without the indexes: as a release before left it."""
    with copied(databases[0], "install_left", "template1") as dsn:
        migrate(dsn)
        _leave(dsn)
        yield dsn


@pytest.fixture
def at_work(left: str) -> Iterator[str]:
    """A copy of it, which the test changes."""
    with copied(left, "install_left_copy", "install_left") as dsn:
        adopt(dsn)
        yield dsn


def _leave(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("drop index " + ", ".join(f"menzil.{name}" for name in (*LOOKUP, "bulk_send_first")))
        conn.execute("select menzil.channel_set('work'); select menzil.send('work', '{}') from generate_series(1, 100)")
        conn.execute("select menzil.schedule_create('s', '* * * * *', 'UTC', 'work', '{}')")
        conn.execute("insert into menzil.schedule_slot (schedule_id, slot_at) select id, now() from menzil.schedule")


def test_a_new_database_has_them_from_the_beginning(empty: str) -> None:
    report = migrate(empty)
    assert report.indexes == []
    with psycopg.connect(empty) as conn:
        assert missing(conn) == invalid(conn) == []


def test_a_database_at_work_gets_them_and_a_second_run_finds_nothing_to_do(at_work: str) -> None:
    said: list[str] = []
    report = migrate(at_work, progress=said.append)
    assert set(LOOKUP) < set(report.indexes)
    assert report.changed
    assert any(line == "building index event_entity, while others work" for line in said)
    with psycopg.connect(at_work, autocommit=True) as conn:
        assert missing(conn) == invalid(conn) == []
        (definition,) = ask(conn, "select indexdef from pg_indexes where indexname = 'line_news'")
        assert definition.endswith("ON menzil.line USING btree (channel_id) WHERE (news IS NOT NULL)")
    assert not migrate(at_work).changed


def test_a_connection_that_is_not_in_autocommit_comes_back_as_it_was(at_work: str) -> None:
    with psycopg.connect(at_work) as conn:
        conn.execute("set lock_timeout = '7s'")
        conn.commit()
        assert migrate(conn).indexes
        assert not conn.autocommit
        conn.rollback()


def test_senders_go_on_while_they_are_built(at_work: str) -> None:
    """Each sender gives up when a lock keeps it for a second: none has to."""
    stop = threading.Event()
    sent: list[int] = []
    failed: list[BaseException] = []

    def send() -> None:
        try:
            with psycopg.connect(at_work, autocommit=True, options="-c lock_timeout=1s") as conn:
                while not stop.is_set():
                    sent.extend(ask(conn, "select menzil.send('work', '{}')"))
                    sent.extend(ask(conn, "select menzil.send_with_options('work', '{}', p_priority => 3)"))
        except BaseException as error:
            failed.append(error)

    senders = [threading.Thread(target=send) for _ in range(2)]
    for one in senders:
        one.start()
    try:
        report = migrate(at_work)
    finally:
        stop.set()
        for one in senders:
            one.join()
    assert failed == []
    assert sent
    assert set(LOOKUP) < set(report.indexes)
    with psycopg.connect(at_work) as conn:
        assert missing(conn) == invalid(conn) == []


def test_an_open_sender_delays_them_and_no_other_sender(at_work: str) -> None:
    said: list[str] = []
    with psycopg.connect(at_work) as open_one, psycopg.connect(at_work, autocommit=True) as other:
        open_one.execute("select menzil.send_with_options('work', '{}')")
        report = migrate(at_work, pace=Pace(patience=0.5), progress=said.append)
        assert "line_news" not in report.indexes
        assert any("waited too long for open transactions" in line for line in said)
        other.execute("set lock_timeout = '1s'")
        other.execute("select menzil.send('work', '{}'), menzil.send_with_options('work', '{}')")
        assert missing(other)
    said.clear()
    report = migrate(at_work, progress=said.append)
    assert "line_news" in report.indexes, "what was left half built is built anew"
    with psycopg.connect(at_work) as conn:
        assert missing(conn) == invalid(conn) == []


def test_two_migrators_at_once_build_each_once(at_work: str) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            migrate(at_work)
        except BaseException as error:
            failed.append(error)

    both = [threading.Thread(target=run) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert failed == []
    migrate(at_work)
    with psycopg.connect(at_work) as conn:
        assert missing(conn) == invalid(conn) == []
