"""A copy of a production database stands still: none of the messages that wait in it leaves it until it is adopted."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded, binaries
from tests.acceptance.crew import Crew, crew_on, until
from tests.acceptance.receiver import Receiver, receiver

BIN = binaries.find().bin


@pytest.fixture(scope="module")
def partner() -> Iterator[Receiver]:
    """The receiver of production's webhooks."""
    with receiver() as there:
        yield there


@pytest.fixture
def production(db: str, partner: Receiver) -> str:
    """A database where a webhook, a message for a handler and a schedule are due."""
    partner.bodies.clear()
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.set_setting('http_allow_internal_urls', 'true')")
        conn.execute("select menzil.create_endpoint('hook', 'http', %s)", [json.dumps({"url": partner.url})])
        conn.execute("select menzil.channel_set('quick')")
        conn.execute("select menzil.send('hook', '1'), menzil.send('quick', '2')")
        conn.execute("select menzil.schedule_create('tick', '* * * * *', 'UTC', 'hook', '3')")
        conn.execute("update menzil.schedule set next_at = now() - interval '1 s'")
    return db


@pytest.fixture
def place() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="mzc-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def restored(server: Embedded, production: str, place: Path) -> Iterator[str]:
    """A dump of it, restored as the database staging."""
    if not (BIN / "pg_dump").exists():
        pytest.skip(f"{BIN} has no pg_dump")
    dsn = make_conninfo(server.dsn, dbname="staging")
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("create database staging")
        subprocess.run([BIN / "pg_dump", "-Fc", "-f", place / "dump", "-d", production], check=True)
        subprocess.run([BIN / "pg_restore", "-d", dsn, place / "dump"], check=True)
        yield dsn
        conn.execute("drop database staging with (force)")


@pytest.fixture
def staging(restored: str, place: Path) -> Iterator[Crew]:
    crew = next(workers := crew_on(restored, place))
    yield crew
    workers.close()


def waiting(crew: Crew) -> int:
    return crew.ask("select count(*) from menzil.queue where status = 'pending'")


def test_a_worker_on_a_restored_dump_delivers_nothing_and_says_why_once(staging: Crew, partner: Receiver) -> None:
    worker = staging.start(app=None, ready=False)
    said = worker.says("copy ")
    assert "is a copy of database db_" in said
    assert "menzil adopt" in said
    assert waiting(staging) == 2
    # It waits, and starts by itself when the copy is adopted.
    assert staging.ask("select menzil.adopt()") is True
    worker.says("started")
    until(lambda: len(partner.bodies) == 2, "the webhook and the schedule")
    assert sorted(partner.bodies) == ["1", "3"]
    assert sum("WARNING copy " in line for line in worker.lines) == 1
    assert worker.stop() == 0


def test_a_worker_that_waits_for_a_copy_to_be_adopted_stops_when_told(staging: Crew, partner: Receiver) -> None:
    worker = staging.start(app="apps:app", ready=False)
    worker.says("copy ")
    assert worker.stop() == 0
    assert staging.traced() == []
    assert partner.bodies == []


def test_a_worker_that_runs_once_on_a_copy_fails_with_a_sentence(staging: Crew, partner: Receiver) -> None:
    worker = staging.start("--once", app=None, ready=False)
    assert worker.ends() == 2
    told = "\n".join(worker.lines)
    assert "is a copy of database" in told
    assert "Hint: run `menzil adopt`" in told
    assert "Traceback" not in told
    assert (partner.bodies, waiting(staging)) == ([], 2)


def test_a_worker_whose_address_is_pointed_at_a_copy_leases_nothing_more(crew: Crew, partner: Receiver) -> None:
    """What a worker that runs meets when a host name or a pooler leads elsewhere."""
    worker = crew.start(app="apps:app")
    crew.send("quick", "before")
    until(lambda: crew.traced(), "it works")
    crew.ask("select menzil.disown()")
    worker.says("copy ")
    sent = crew.send("quick", "after")
    assert crew.ask("select menzil.copy_notice()")
    assert len(crew.traced()) == 1
    assert crew.ask("select menzil.adopt()") is True
    worker.says("adopted")
    until(lambda: str(sent[0]) in [line[2] for line in crew.traced()], "it works again")
    assert worker.stop() == 0


def test_the_original_of_a_copy_goes_on(production: str, restored: str, place: Path, partner: Receiver) -> None:
    crew = next(workers := crew_on(production, place))
    crew.drain(app=None)
    assert sorted(partner.bodies) == ["1", "3"]
    workers.close()


def test_a_renamed_database_is_no_copy(server: Embedded, production: str, partner: Receiver, place: Path) -> None:
    name = psycopg.conninfo.conninfo_to_dict(production)["dbname"]
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute(f"alter database {name} rename to renamed")
        try:
            crew = next(workers := crew_on(make_conninfo(production, dbname="renamed"), place))
            crew.drain(app=None)
            workers.close()
        finally:
            conn.execute(f"alter database renamed rename to {name}")
    assert sorted(partner.bodies) == ["1", "3"]
