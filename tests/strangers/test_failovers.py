"""The primary dies under load and its synchronous standby takes over: what was acknowledged is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from menzil.console import Access, Console
from menzil.embedded import binaries
from menzil.embedded.account import server_account
from menzil.install import migrate
from tests.console.seat import served
from tests.memory import MEMORY
from tests.strangers.busy import Busy, drain, live, prepare

BIN = binaries.find().bin

pytestmark = pytest.mark.skipif(not (BIN / "pg_basebackup").exists(), reason=f"{BIN} has no pg_basebackup")


class Pair:
    """A primary and, for a while, its standby. Both listen on sockets in one directory, under ports of their own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.account = server_account()
        self.port = 5001
        if self.account is not None:
            os.chown(place, self.account.uid, self.account.gid)
        self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        (self.data / "postgresql.conf").open("a").write("fsync = off\nmax_connections = 40\n")
        self.start()

    @property
    def data(self) -> Path:
        return self.place / str(self.port)

    @property
    def dsn(self) -> str:
        return f"host={self.place} port={self.port} user=postgres dbname=postgres"

    def add_standby(self) -> None:
        """From now on a commit of the primary waits for the standby."""
        copy = self.place / str(self.port + 1)
        self.run("pg_basebackup", "-D", copy, "-d", self.dsn, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self.port += 1
        self.start()
        self.port -= 1
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            # Not ALTER SYSTEM: the standby has a copy of that file, and would wait for a standby of its own.
            (self.data / "postgresql.conf").open("a").write("synchronous_standby_names = '*'\n")
            conn.execute("select pg_reload_conf()")
            deadline = time.monotonic() + 60
            while conn.execute("select sync_state from pg_stat_replication").fetchone() != ("sync",):
                assert time.monotonic() < deadline, "the standby does not follow"
                time.sleep(0.02)

    def fail_over(self) -> None:
        """Kill the primary; the standby becomes the primary."""
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.data)
        self.port += 1
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.place} -p {self.port}"
        self.run("pg_ctl", "-D", self.data, "-l", self.place / f"{self.port}.log", "-w", "-o", options, "start")

    def run(self, program: str, *arguments: str | Path) -> None:
        """Run a program of the server in its directory, as its account."""
        process = self.account.process() if self.account is not None else {"stdin": subprocess.DEVNULL}
        command = [str(BIN / program), *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60, **{**process, "cwd": self.place})


@pytest.fixture
def pair() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        running = Pair(Path(place))
        try:
            migrate(running.dsn)
            prepare(running.dsn)
            yield running
        finally:
            running.stop()


def fail_over_under_load(pair: Pair) -> None:
    pair.add_standby()
    busy = Busy(pair.dsn)
    with busy.at_work():
        busy.until(completed=100)
        pair.fail_over()
    assert [error for error in busy.errors if not isinstance(error, psycopg.OperationalError)] == []
    assert len(busy.completed) > 20, "the queue was busy"
    with psycopg.connect(pair.dsn, autocommit=True) as conn:
        bodies = {row[0] for row in conn.execute("select id from menzil.message").fetchall()}
        assert busy.acknowledged - bodies == set(), "a send that was acknowledged is lost"
        assert conn.execute("select menzil.copy_notice()").fetchone() == (None,), "a failover makes no copy"
        wanted = live(conn)
        assert busy.completed & wanted == set(), "an end that was acknowledged is undone"
        assert busy.cancelled & wanted == set(), "a cancel that was acknowledged is undone"
        got = drain(conn, wanted)
        assert (sorted(wanted - got), sorted(got - wanted)) == ([], [])
        assert conn.execute("select status from menzil.health_check() where check_name = 'places'").fetchone() == (
            "ok",
        )


def test_a_standby_that_takes_over_under_load_has_everything(pair: Pair) -> None:
    fail_over_under_load(pair)


def test_a_standby_says_of_when_it_is_once_its_replay_is_late(pair: Pair) -> None:
    pair.add_standby()
    copy = pair.dsn.replace(f"port={pair.port}", f"port={pair.port + 1}")
    seen = "select standby, at is not null, behind from menzil._replay_seen('0 s')"
    said = "select status, detail from menzil.health_check() where check_name = 'standby'"

    def until(wanted: tuple[object, ...]) -> None:
        deadline = time.monotonic() + 60
        while (found := standby.execute(seen).fetchone()) != wanted:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)

    with psycopg.connect(pair.dsn, autocommit=True) as primary, psycopg.connect(copy, autocommit=True) as standby:
        try:
            assert primary.execute(seen).fetchone() == (False, False, None)
            assert primary.execute(said).fetchone() == ("ok", "This server is no standby.")
            primary.execute("select menzil.channel_set('late')")
            until((True, True, False))
            standby.execute("select pg_wal_replay_pause()")
            primary.execute("select menzil.channel_pause('late')")
            until((True, True, True))
            with served(Console(copy, local=Access.operator("ada"))) as browser:
                page = browser.get("/acts/channel-resume?channel=late")
                done = browser.post("/acts/channel-resume/do", {"csrf": page.field("csrf"), "plan": page.field("plan")})
                assert done.status == 409
                assert "This server is a standby, and nothing can be changed on it." in done.words
            row = standby.execute(said).fetchone()
            assert row is not None
            assert row[1].startswith("This server is a standby")
            standby.execute("select pg_wal_replay_resume()")
            until((True, True, False))
        finally:
            standby.close()
            pair.port += 1
            pair.stop()
            pair.port -= 1


@pytest.mark.torture
def test_twenty_failovers_lose_nothing(pair: Pair) -> None:
    for _ in range(20):
        fail_over_under_load(pair)
