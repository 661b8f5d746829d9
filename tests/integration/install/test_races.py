"""Installing while others are at work, and being killed in the middle of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.install import InstallLockedError, Pace, Report, migrate
from menzil.model.errors import ConnectionFailedError
from tests.integration.install.catalog import dump
from tests.integration.install.toy import LABELS

IMPATIENT = Pace(lock_timeout=0.05, patience=0.4)
# A migration that stops half-way for as long as a test holds this lock.
STOP = "select pg_advisory_xact_lock(4711);\n"
MIGRATION_LOCK = "select pg_advisory_xact_lock(120282525984108)"


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def waiting_backends(conn: psycopg.Connection) -> list[int]:
    rows = conn.execute(
        "select pid from pg_locks where locktype = 'advisory' and objid = 4711 and not granted"
        " and database = (select oid from pg_database where datname = current_database())"
    )
    return [pid for (pid,) in rows]


def test_two_migrators_at_once_apply_each_step_once(empty, another, plant):
    root = plant(2)
    barrier = threading.Barrier(4)

    def run() -> Report:
        barrier.wait()
        return migrate(empty, root=root)

    with ThreadPoolExecutor(4) as pool:
        reports = [future.result() for future in [pool.submit(run) for _ in range(4)]]
    assert sorted(label for report in reports for label in report.applied) == LABELS
    assert sum(report.code_applied for report in reports) == 1
    assert {report.to_version for report in reports} == {2}
    migrate(another, root=root)
    assert dump(empty) == dump(another)


@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
def test_second_migrator_waits_and_finds_the_work_done(empty, plant, isolation):
    empty = make_conninfo(empty, options=f"-c default_transaction_isolation={isolation.replace(' ', chr(92) + ' ')}")
    root = plant(1)
    first = root / "migrations/0001_first.sql"
    first.write_text(first.read_text() + STOP)
    patient = Pace(lock_timeout=60)
    waits = threading.Event()
    with psycopg.connect(empty, autocommit=True) as conn, ThreadPoolExecutor(2) as pool:
        conn.execute("select pg_advisory_lock(4711)")
        one = pool.submit(migrate, empty, root=root, pace=patient)
        wait_for(lambda: bool(waiting_backends(conn)))
        two = pool.submit(
            migrate, empty, root=root, pace=patient, progress=lambda line: waits.set() if "waiting" in line else None
        )
        assert waits.wait(60)
        assert not two.done()
        conn.execute("select pg_advisory_unlock(4711)")
        assert one.result().applied == LABELS[:1]
        assert two.result().applied == []


def test_locked_table_is_tried_again_until_it_is_free(empty, plant):
    migrate(empty, root=plant(1))
    with psycopg.connect(empty) as holder:
        holder.execute("select * from menzil.toy")
        lines: list[str] = []

        def progress(line: str) -> None:
            lines.append(line)
            if "trying again" in line:
                holder.rollback()

        report = migrate(empty, root=plant(2), pace=Pace(lock_timeout=0.05), progress=progress)
    assert report.applied == LABELS[1:]
    assert lines[0].startswith("applying 0002_second: another transaction holds a lock")


def test_table_locked_for_too_long_names_who_holds_it(empty, plant):
    migrate(empty, root=plant(1))
    before = dump(empty)
    with psycopg.connect(empty) as holder:
        holder.execute("select * from menzil.toy")
        with pytest.raises(InstallLockedError, match="gave up applying 0002_second") as caught:
            migrate(empty, root=plant(2), pace=IMPATIENT)
        assert f"pid {holder.info.backend_pid}" in caught.value.hint
    assert dump(empty) == before
    assert migrate(empty, root=plant(2)).applied == LABELS[1:]


def test_readers_go_on_while_a_migrator_waits_for_its_lock(empty, plant):
    migrate(empty, root=plant(1))
    with psycopg.connect(empty) as holder, psycopg.connect(empty, autocommit=True) as reader:
        holder.execute("select * from menzil.toy")
        reader.execute("set lock_timeout = '10s'")
        served = 0
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(migrate, empty, root=plant(2), pace=Pace(lock_timeout=0.1, patience=1))
            while not work.done():
                reader.execute("select * from menzil.toy")
                served += 1
            assert isinstance(work.exception(), InstallLockedError)
    assert served > 1


def test_killed_server_process_leaves_whole_steps_only(empty, plant):
    root = plant(2)
    second = root / "migrations/0002_second.sql"
    good = second.read_text()
    second.write_text(good + STOP)
    with psycopg.connect(empty, autocommit=True) as conn, ThreadPoolExecutor(1) as pool:
        conn.execute("select pg_advisory_lock(4711)")
        work = pool.submit(migrate, empty, root=root, pace=Pace(lock_timeout=60))
        wait_for(lambda: bool(waiting_backends(conn)))
        conn.execute("select pg_terminate_backend(%s)", waiting_backends(conn))
        assert isinstance(work.exception(), ConnectionFailedError)
        assert conn.execute("select array_agg(version) from menzil.migration").fetchone() == ([1],)
        assert conn.execute("select to_regclass('menzil.more')").fetchone() == (None,)
    second.write_text(good)
    assert migrate(empty, root=root).applied == LABELS[1:]


def test_killed_client_process_leaves_whole_steps_only(empty, plant):
    root = plant(2)
    second = root / "migrations/0002_second.sql"
    good = second.read_text()
    second.write_text(good + STOP)
    program = (
        "import sys, pathlib; from menzil.install import Pace, migrate\n"
        "migrate(sys.argv[1], root=pathlib.Path(sys.argv[2]), pace=Pace(lock_timeout=60))"
    )
    with psycopg.connect(empty, autocommit=True) as conn:
        conn.execute("select pg_advisory_lock(4711)")
        process = subprocess.Popen([sys.executable, "-c", program, empty, str(root)])
        try:
            wait_for(lambda: bool(waiting_backends(conn)))
        finally:
            process.kill()
        assert process.wait(60) == -signal.SIGKILL
        conn.execute("select pg_advisory_unlock(4711)")
        # What the dead one left half done is rolled back; the next migrator waits for that if it has to.
        second.write_text(good)
        assert migrate(empty, root=root).applied == LABELS[1:]


def test_two_databases_of_one_server_may_be_installed_at_once(empty, another, plant):
    root = plant(2)
    barrier = threading.Barrier(2)

    def run(dsn: str) -> Report:
        barrier.wait()
        return migrate(dsn, root=root)

    with ThreadPoolExecutor(2) as pool:
        reports = [future.result() for future in [pool.submit(run, dsn) for dsn in (empty, another)]]
    assert [report.to_version for report in reports] == [2, 2]
