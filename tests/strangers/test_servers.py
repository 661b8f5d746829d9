"""A dump that another cluster restored is a copy; a database that pg_upgrade took along is none."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.install import migrate
from tests.memory import MEMORY
from tests.strangers.test_failovers import BIN, Pair

pytestmark = pytest.mark.skipif(not (BIN / "pg_upgrade").exists(), reason=f"{BIN} has no pg_upgrade")

LEASE = "select count(*) from menzil.message_dequeue(60000, 10)"


@pytest.fixture
def old() -> Iterator[Pair]:
    """A server whose database postgres, with the same oid on every server, holds one message."""
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        running = Pair(Path(place))
        try:
            migrate(running.dsn)
            with psycopg.connect(running.dsn, autocommit=True) as conn:
                conn.execute("select menzil.channel_set('work')")
                conn.execute("select menzil.send('work', '1')")
            yield running
        finally:
            running.stop()


def test_a_dump_restored_into_another_cluster_is_a_copy(old: Pair, server: Embedded, tmp_path: Path) -> None:
    dsn = make_conninfo(server.dsn, dbname="postgres")
    subprocess.run([BIN / "pg_dump", "-x", "-O", "-n", "menzil", "-f", tmp_path / "dump", "-d", old.dsn], check=True)
    restore: list[str | Path] = [BIN / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", tmp_path / "dump", "-d", dsn]
    with psycopg.connect(dsn, autocommit=True) as conn:
        try:
            subprocess.run(restore, check=True, stdout=subprocess.DEVNULL)
            same = "select d.oid = h.database_oid from pg_database d, menzil.home h where d.datname = 'postgres'"
            assert conn.execute(same).fetchone() == (True,), "only the cluster tells them apart"
            with pytest.raises(psycopg.Error, match="is a copy of database postgres"):
                conn.execute(LEASE)
            migrate(dsn, reapply=True)  # an upgrade of menzil makes no copy live
            with pytest.raises(psycopg.Error, match="is a copy of database postgres"):
                conn.execute(LEASE)
            conn.execute("select menzil.adopt()")
            assert conn.execute(LEASE).fetchone() == (1,)
        finally:
            conn.execute("drop schema menzil cascade")


@pytest.mark.slow
def test_a_database_that_pg_upgrade_took_to_a_newer_release_is_no_copy(old: Pair) -> None:
    identifier = "select system_identifier from pg_control_system()"
    with psycopg.connect(old.dsn, autocommit=True) as conn:
        before = conn.execute(identifier).fetchone()
        # There is one release on this machine that can be upgraded from: it is called an older one.
        conn.execute("update menzil.home set server_major = server_major - 1, writer = pg_current_xact_id()::xid")
        assert conn.execute("select menzil.copy_notice()").fetchone() == (None,)
    old.run("pg_ctl", "-D", old.data, "-m", "fast", "-w", "stop")
    source = old.data
    old.port += 1
    old.run("initdb", "-D", old.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = ("-b", BIN, "-B", BIN, "-d", source, "-D", old.data, "-U", "postgres", "--no-sync")
    old.run("pg_upgrade", *options, "-s", old.place)
    (old.data / "postgresql.conf").open("a").write("fsync = off\n")
    old.start()
    with psycopg.connect(old.dsn, autocommit=True) as conn:
        assert conn.execute(identifier).fetchone() != before, "another cluster"
        assert conn.execute("select menzil.copy_notice()").fetchone() == (None,)
        assert conn.execute(LEASE).fetchone() == (1,)
        conn.execute("call menzil.run_jobs()")
        known = "select system_identifier = (select c.system_identifier from pg_control_system() c) from menzil.home"
        assert conn.execute(known).fetchone() == (True,)
