"""A migration gets through beside clients that lock its tables in the other order, and ends none of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from menzil.install import Pace, migrate, script
from tests.acceptance.crew import until
from tests.integration.install.toy import LABELS

# The client holds the newer table while it asks for the older one.
CLIENT = ("select from menzil.shelf", "select pg_sleep(0.03)", "select from menzil.toy")


@pytest.fixture
def tree(plant, empty: str) -> Path:
    """A database at work whose next migration changes two tables."""
    first: Path = plant(1)
    text = (first / "migrations/0001_first.sql").read_text() + (
        "create table menzil.shelf (id integer primary key);\ncreate table menzil.attic (id integer primary key);\n"
    )
    (first / "migrations/0001_first.sql").write_text(text)
    migrate(empty, root=first)
    root: Path = plant(2)
    (root / "migrations/0001_first.sql").write_text(text)
    with (root / "migrations/0002_second.sql").open("a") as second:
        second.write("alter table menzil.shelf add column note text;\n")
    return root


@contextmanager
def clients(dsn: str, count: int = 3) -> Iterator[list[int]]:
    """So many, one transaction after the other: at every moment one of them holds the newer table."""
    stop, ended = threading.Event(), [0] * count

    def work(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not stop.is_set():
                with conn.transaction():
                    for text in CLIENT:
                        conn.execute(text)
                ended[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield ended
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def test_tables_that_were_in_the_way_are_locked_first_by_the_next_try(empty: str, tree: Path):
    said: list[str] = []
    with clients(empty) as ended:
        until(lambda: min(ended) > 0, "every client is at work")
        assert migrate(empty, root=tree, pace=Pace(patience=30), progress=said.append).applied == LABELS[1:]
        before = min(ended)
        until(lambda: min(ended) > before, "no client was ended")
    assert any("another transaction holds a lock" in line for line in said), "the first try met the clients half way"


def test_reader_of_a_table_that_the_step_does_not_change_is_in_no_way(empty: str, tree: Path):
    """A dump holds all tables that it has begun to read until it ends."""
    with psycopg.connect(empty) as dump:
        dump.execute("select from menzil.attic")
        assert migrate(empty, root=tree, pace=Pace(patience=5)).applied == LABELS[1:]


def test_printed_upgrade_locks_every_table_before_it_changes_one(empty: str, tree: Path):
    with psycopg.connect(empty, autocommit=True) as conn:
        text = script("upgrade", root=tree, transaction=False)
        head = text[: text.index("do $migrate_2$")]
        with conn.transaction(force_rollback=True):
            conn.execute(head, prepare=False)
            locked = conn.execute(
                "select c.relname from pg_locks l join pg_class c on c.oid = l.relation"
                " where l.pid = pg_backend_pid() and l.mode = 'AccessExclusiveLock'"
            ).fetchall()
    assert {("toy",), ("shelf",)} <= set(locked)
