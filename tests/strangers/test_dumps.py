"""Real dumps of a busy queue, restored elsewhere: every live message comes, none twice, with and without a rebuild."""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded, binaries
from tests.conftest import database
from tests.memory import MEMORY
from tests.strangers.busy import Busy, drain, live, prepare

BIN = binaries.find().bin

pytestmark = pytest.mark.skipif(not (BIN / "pg_dump").exists(), reason=f"{BIN} has no pg_dump")


class Dump(NamedTuple):
    file: Path
    held: float  # seconds for which the snapshot was held before the tables were read


@pytest.fixture(scope="module")
def younger() -> Iterator[Embedded]:
    """A second server, which has not had as many transactions as the first."""
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        running = Embedded(Path(place) / "pg", durable=False).start()
        yield running
        running.close(wait=30)


def dump(dsn: str, file: Path, held: float) -> Dump:
    """Take a dump; a held snapshot is old when the dump begins to read, and registers are newer than tables."""
    command: list[str | Path] = [BIN / "pg_dump", "-Fc", "-Z0", "-f", file, "-d", dsn]
    with psycopg.connect(dsn) as holder:
        if held:
            holder.execute("set transaction isolation level repeatable read")
            row = holder.execute("select pg_export_snapshot()").fetchone()
            assert row is not None
            command.append(f"--snapshot={row[0]}")
            time.sleep(held)
        subprocess.run(command, check=True)
    return Dump(file, held)


def restored(server: Embedded, name: str, file: Path) -> str:
    dsn = make_conninfo(server.dsn, dbname=name)
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute(f"drop database if exists {name} with (force)")
        conn.execute(f"create database {name}")
    # Roles belong to the server and are not part of a dump.
    subprocess.run([BIN / "pg_restore", "--no-privileges", "--no-owner", "-d", dsn, file], check=True)
    return dsn


def check(dsn: str, rebuild: bool) -> int:
    """Drain what was restored and compare it with what its bodies and ends say. Returns how many messages that were."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        wanted = live(conn)
        conn.execute("select menzil.adopt()")
        if rebuild:
            conn.execute("select menzil.rebuild()")
        got = drain(conn, wanted)
        assert (sorted(wanted - got), sorted(got - wanted)) == ([], [])
        assert conn.execute("select count(*) from menzil.queue").fetchone() == (0,)
        assert live(conn) == set()
        places = "select status from menzil.health_check() where check_name = 'places'"
        assert conn.execute(places).fetchone() == ("ok",)
        conn.execute("select menzil.send('c0', '{}')")
        assert len(drain(conn, {0})) == 1, "a new message goes through"
        return len(wanted)


@pytest.fixture
def source(server: Embedded, _installed: str) -> Iterator[str]:
    with database(server, "busy", _installed) as dsn:
        prepare(dsn)
        yield dsn


def play(dsn: str, server: Embedded, younger: Embedded, place: Path, holds: list[float]) -> None:
    """Dump a busy queue again and again; restore each, every third into a younger cluster, and rebuild every other."""
    busy = Busy(dsn)
    with busy.at_work(senders=3, consumers=2):
        busy.until(completed=100)
        dumps = [dump(dsn, place / str(n), held) for n, held in enumerate(holds)]
    assert busy.errors == []
    assert len(busy.completed) > 50, "the queue was busy"
    with psycopg.connect(dsn, autocommit=True) as conn:
        ahead = conn.execute("select pg_current_xact_id()::text::bigint").fetchone()
        wanted = live(conn)
        assert drain(conn, wanted) == wanted
    with psycopg.connect(younger.dsn, autocommit=True) as conn:
        behind = conn.execute("select pg_current_xact_id()::text::bigint").fetchone()
        assert ahead is not None
        assert behind is not None
        assert behind < ahead
    counts = []
    for n, each in enumerate(dumps):
        host = younger if n % 3 == 2 else server
        counts.append(check(restored(host, "stranger", each.file), rebuild=n % 2 == 1))
        each.file.unlink()
    assert max(counts) > 0, "some messages were live in the dumps"
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("drop database stranger with (force)")


def test_dumps_of_a_busy_queue_drain_completely(
    source: str, server: Embedded, younger: Embedded, tmp_path: Path
) -> None:
    play(source, server, younger, tmp_path, [0, 0, 0.4, 0, 1.2, 0, 0.1, 0])


@pytest.mark.torture
@pytest.mark.parametrize("part", range(4))
def test_a_hundred_dumps_of_a_busy_queue_drain_completely(
    source: str, server: Embedded, younger: Embedded, tmp_path: Path, part: int
) -> None:
    chance = random.Random(part)
    play(source, server, younger, tmp_path, [chance.choice((0, chance.random() * 4)) for _ in range(25)])


def test_rebuilding_beside_a_busy_crowd_loses_nothing_and_fails_no_call(source: str) -> None:
    busy = Busy(source)
    with psycopg.connect(source, autocommit=True) as conn:
        with busy.at_work():
            for _ in range(8):
                conn.execute("select menzil.rebuild()")
                time.sleep(0.2)
        assert busy.errors == []
        assert len(busy.completed) > 50, "the queue was busy"
        wanted = live(conn)
        assert busy.completed & wanted == set()
        assert drain(conn, wanted) == wanted
