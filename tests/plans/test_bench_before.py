"""What is compared with 0.1.0 is 0.1.0, does the same work, and is counted the same way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

from bench import history, kinds
from bench.before import ROOT, Before, NoHistoryError
from bench.counts import counted
from bench.crew import Crew
from bench.fill import settle
from bench.kinds import KINDS, PLAIN, Kind
from bench.readings import Reading, Series
from bench.sections import beside, calls, counts, lanes, lives
from bench.sections.lives import Past, vacuum_ratio
from bench.server import Server, connected
from bench.session import NEW, OLD, Session
from bench.turns import Conn, Side, compete, connection, settings
from menzil.embedded import Embedded

_WHERE = "import menzil; print(menzil.__file__)"


@pytest.fixture(scope="module")
def session(server: Embedded) -> Iterator[Session]:
    made = Server(server.dsn, own=True)
    with Crew(0) as crew, Before() as before:
        try:
            before.tree  # noqa: B018
        except NoHistoryError as error:
            pytest.skip(str(error))
        yield Session(made, crew, quick=True, before=before)
    made.drop()


@pytest.fixture(params=[NEW, OLD])
def conn(session: Session, request: pytest.FixtureRequest) -> Iterator[Conn]:
    dsn = session.server.database(session.versions()[request.param])
    with connection(dsn) as conn:
        kinds.limit(conn)
        yield conn
    session.server.remove(dsn)


def tiny(monkeypatch: pytest.MonkeyPatch, section: ModuleType, **sizes: object) -> None:
    for name, value in sizes.items():
        monkeypatch.setattr(section, name, {True: value} if isinstance(getattr(section, name), dict) else value)


def test_both_versions_are_what_they_are_called(session: Session) -> None:
    for name, root in session.versions().items():
        with connected(session.server.database(root)) as conn:
            old = conn.execute("select to_regclass('menzil.arrival') is not null").fetchone()
        assert old == (name == OLD,)
    before = session.before
    words = [sys.executable, "-c", _WHERE]
    told = subprocess.run(words, cwd=before.tree, env=os.environ | before.environment, capture_output=True, check=True)
    assert told.stdout.decode().startswith(str(before.tree))


def test_without_the_history_only_this_version_is_measured(session: Session) -> None:
    with Before("0000000") as nothing:
        alone = Session(session.server, session.crew, quick=True, before=nothing)
        assert list(alone.versions()) == [NEW]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_of_message_is_archived(conn: Conn, kind: Kind) -> None:
    assert kinds.lives(conn, kind, 10, 3) == 30
    found = conn.execute("select count(*), min(num_attempts), max(num_attempts) from menzil.archive").fetchone()
    assert found == (30, kind.tries, kind.tries)
    assert conn.execute("select count(*) from menzil.queue").fetchone() == (0,)


def test_messages_that_do_not_come_are_an_error(conn: Conn) -> None:
    conn.execute("select menzil.channel_pause(%s)", (PLAIN.channel,))
    with pytest.raises(RuntimeError, match="Of 10 messages in batches, 10 do not come"):
        kinds.lives(conn, PLAIN, 10, 1)


def test_a_backlog_is_settled_before_it_is_measured(conn: Conn) -> None:
    kinds.send(conn, kinds.SINGLE, 50)
    settle(conn)
    assert kinds.take(conn, 100) == 50


def test_one_call_completes_what_the_call_before_leased(session: Session) -> None:
    with connection(session.server.database()) as conn:
        kinds.send(conn, PLAIN, 25)
        step = kinds.following(conn, 10)
        assert [step() for _ in range(4)] == [10, 10, 5, 0]
        assert conn.execute("select count(*) from menzil.archive").fetchone() == (25,)


def test_rows_and_bytes_of_log_are_counted_per_message(session: Session) -> None:
    with connected(session.server.database()) as conn:

        def work() -> int:
            conn.execute("insert into bare (payload) select '1' from generate_series(1, 100)")
            conn.execute("delete from bare where id % 2 = 0")
            return 100

        found = counted(conn, work)
    assert (found.inserted, found.dead) == (1.0, 0.5)
    assert 50 < found.wal < 1_000


def test_the_lowest_turn_counts(session: Session) -> None:
    with connection(session.server.database()) as conn:
        loops = iter([9, 1, 400_000, 1, 200_000])  # the first turn is not counted

        def step() -> int:
            conn.execute("select count(*) from generate_series(1, %s)", (next(loops),)).fetchone()
            return 1

        side = Side(conn, step)
        compete({"only": side}, 1, 4)
        assert len(side.server) == 4
        assert side.lowest == min(side.server) < max(side.server) / 2
        with pytest.raises(RuntimeError, match="found nothing to do"):
            Side(conn, lambda: 0).turn(1, counts=True)


def test_the_ratio_by_processor_time_is_that_of_the_lowest_readings() -> None:
    series = Series()
    series.add(Reading(1.0, 30.0), Reading(1.0, 12.0))
    series.add(Reading(1.0, 20.0), Reading(1.0, 40.0))
    assert series.by_cpu() == 12.0 / 20.0


def test_settings_of_the_server_are_changed_for_a_while(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(session.server.dsn) as conn:

        def shown() -> object:
            with connected(session.server.dsn) as fresh:
                return fresh.execute("show log_min_duration_sample").fetchone()

        usual = conn.execute("show log_min_duration_sample").fetchone()
        with settings(session.server, log_min_duration_sample="77ms") as changed:
            assert changed
            assert shown() == ("77ms",)
        monkeypatch.setattr(session.server, "own", False)
        with settings(session.server, log_min_duration_sample="77ms") as changed:
            assert not changed
            assert shown() == usual


@pytest.mark.slow
@pytest.mark.parametrize("section", ["counts", "calls", "lanes", "lives"])
def test_a_section_ends_with_figures_beside_0_1_0(
    session: Session, section: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny(monkeypatch, counts, CALLS=2, WARM_UP=1)
    tiny(monkeypatch, calls, TURNS=1)
    tiny(monkeypatch, lanes, CHANNELS=500, TURNS=2, STEPS=1, SIZE=5)
    tiny(monkeypatch, lives, LIVES=2_000, TURNS=1, SLICES=3)
    session.figures.clear()
    import_module(f"bench.sections.{section}").run(session)
    assert any(figure.reached is not None for figure in session.figures)
    assert any("0.1.0" in figure.name or "0.1.0" in figure.company for figure in session.figures)
    assert all(figure.value > 0 for figure in session.figures)


def test_a_vacuum_that_cost_no_more_than_an_idle_one_gives_no_figure(session: Session) -> None:
    with connected(session.server.dsn) as conn:
        worked, idle = Past("a", conn, vacuum=3.0, idle=1.0), Past("b", conn, vacuum=1.0, idle=1.5)
        assert vacuum_ratio(worked, Past("c", conn, vacuum=5.0, idle=1.0)) == 0.5
        assert vacuum_ratio(worked, idle) is None
        assert vacuum_ratio(idle, worked) is None


def test_a_filled_archive_is_read_as_if_it_had_been_lived(session: Session) -> None:
    with connected(session.server.database()) as conn:
        history.month(conn, "2025-03-01 00:00Z", 1, 1_000, step="1 s", again=10)
        history.rest(conn)
        for source in ("plain_archive", "menzil.archive"):
            found = conn.execute(
                f"select count(distinct id), sum(num_attempts), count(response) from {source}"
            ).fetchone()
            assert found == (1_000, 1_100, 1_000)


def test_a_commit_is_compared_with_itself_and_does_the_same_work(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of 20 deliveries the worker may use less than a tick of the clock that counts its processor time.
    few = {"TURNS": {True: 1}, "PROCESSES": {True: 1}, "SENDS": 10, "BACKLOGS": {True: 1}, "MESSAGES": {True: 200}}
    for name, value in few.items():
        monkeypatch.setattr(beside, name, value)
    with Before("HEAD") as that:
        monkeypatch.setattr(session, "beside", that)
        monkeypatch.setattr(session, "figures", [])
        beside.run(session)
    assert len(session.figures) == 9
    assert all(figure.value > 0 and figure.beside["µs"] > 0 for figure in session.figures)


def test_a_commit_that_is_not_there_is_named_before_anything_is_measured() -> None:
    command = [sys.executable, "-m", "bench", "--beside", "nowhere"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error: no nowhere: " in done.stderr
