"""The embedded PostgreSQL when something dies, stays behind or does not start."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from menzil.embedded import EmbeddedError
from menzil.embedded.control import stop
from tests.integration.embedded_room import Room, alive, ask, eventually, reaches


def test_a_killed_postmaster_comes_back_under_its_users_with_the_same_connection_string(room: Room) -> None:
    with room.embedded() as server:
        dsn = server.dsn
        for _ in range(3):
            pid = server.pid
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: reaches(dsn), "the server is back")
            assert server.pid != pid
        assert server.dsn == dsn


def test_a_killed_postmaster_is_there_for_the_next_user(room: Room) -> None:
    with room.embedded() as first:
        killed = first.pid
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: not alive(killed), "the server is dead")
        with room.embedded() as second:
            assert reaches(second.dsn)
            assert second.pid != killed


def test_a_backend_deep_in_a_query_does_not_hold_up_the_restart(room: Room) -> None:
    with room.embedded() as server:
        connection = psycopg.connect(server.dsn, autocommit=True)
        backend = connection.info.backend_pid
        busy = threading.Thread(target=_run_for_ever, args=(connection,))
        busy.start()
        query = f"select state from pg_stat_activity where pid = {backend}"
        eventually(lambda: ask(server.dsn, query) == "active", "the query runs")
        dsn = server.dsn
        os.kill(server.pid, signal.SIGKILL)
        eventually(lambda: reaches(dsn), "the server is back", 10)
        assert not alive(backend)
        busy.join()
        connection.close()


def _run_for_ever(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    with contextlib.suppress(psycopg.OperationalError):
        connection.execute("do $$ begin loop end loop; end $$")


def test_a_killed_supervisor_is_replaced_by_the_next_user(room: Room) -> None:
    with room.embedded() as first:
        pid, supervisor = first.pid, room.supervisor()
        os.kill(supervisor, signal.SIGKILL)
        eventually(lambda: not alive(supervisor), "the supervisor is dead")
        with room.embedded() as second:
            assert second.pid == pid  # the server did not notice
            replaced = room.supervisor()
            assert replaced != supervisor
            os.kill(pid, signal.SIGKILL)  # and the new supervisor takes its task seriously
            eventually(lambda: reaches(second.dsn), "the server is back")
        last = first.pid
    eventually(lambda: not alive(last) and not alive(replaced), "server and supervisor end")


def test_the_replacement_stops_a_server_it_did_not_start(room: Room) -> None:
    user = room.user()
    pid = user.got()["pid"]
    os.kill(room.supervisor(), signal.SIGKILL)
    user.kill()
    eventually(lambda: room.status().supervisor is None, "nobody looks after the server")
    assert alive(pid)
    assert stop(room.data_dir) == []
    assert not alive(pid)


def test_supervisor_and_postmaster_killed_together_are_both_replaced(room: Room) -> None:
    with room.embedded() as server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("create table kept as select 42 as answer")
        dying = room.supervisor(), server.pid
        for pid in dying:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: not any(alive(pid) for pid in dying), "both are dead")
        with room.embedded() as second:
            assert ask(second.dsn, "select answer from kept") == 42


def test_pid_files_that_name_a_stranger_do_not_block_the_start(room: Room) -> None:
    server = room.embedded().start()
    port, data = server.port, room.home() / "data"
    pid_file = (data / "postmaster.pid").read_text()
    owner = data.stat()
    server.close(wait=20)
    # As after a reboot: the files of a killed server, and their pid in the hands of another process of the same user.
    account = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    stranger = subprocess.Popen(["sleep", "60"], cwd="/", **account)  # type: ignore[call-overload]
    try:
        forged = "\n".join([str(stranger.pid), *pid_file.splitlines()[1:]]) + "\n"
        for name in ("postmaster.pid", f".s.PGSQL.{port}.lock"):
            (data / name).write_text(forged)
            (data / name).chmod(0o600)
            os.chown(data / name, owner.st_uid, owner.st_gid)
        with room.embedded() as again:
            assert reaches(again.dsn)
            assert again.port == port
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a test have zombies without a parent who cares")
def test_a_zombie_in_the_pid_file_does_not_block_the_start(room: Room) -> None:
    server = room.embedded().start()
    data = room.home() / "data"
    pid_file = (data / "postmaster.pid").read_text()
    owner = data.stat()
    server.close(wait=20)
    account = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    zombie = subprocess.Popen(["true"], cwd="/", **account)  # type: ignore[call-overload]
    eventually(lambda: not alive(zombie.pid), "a zombie")
    (data / "postmaster.pid").write_text("\n".join([str(zombie.pid), *pid_file.splitlines()[1:]]) + "\n")
    os.chown(data / "postmaster.pid", owner.st_uid, owner.st_gid)
    with room.embedded() as again:
        assert reaches(again.dsn)
    zombie.wait()


def test_a_supervisor_killed_while_it_makes_the_cluster_leaves_nothing_in_the_way(empty_room: Room) -> None:
    user = empty_room.user()
    making = eventually(lambda: list(empty_room.data_dir.glob("*/data.new-*")), "initdb runs")
    home = making[0].parent
    supervisor = int((home / "supervisor").read_text())
    user.kill()
    os.kill(supervisor, signal.SIGKILL)
    with empty_room.embedded() as server:
        assert reaches(server.dsn)
    assert list(home.glob("data.new-*")) == []
    assert list(home.glob("password.*")) == []


def test_a_directory_that_is_no_cluster_makes_way_but_is_kept(empty_room: Room) -> None:
    with Room() as other:
        major = other.home().name
    data = empty_room.data_dir / major / "data"
    data.mkdir(parents=True)
    for directory in (empty_room.data_dir, data.parent):
        directory.chmod(0o711)
    (data / "somebody's.txt").write_text("precious")
    with empty_room.embedded() as server:
        assert reaches(server.dsn)
    kept = list(data.parent.glob("data.unusable-*/somebody's.txt"))
    assert [path.read_text() for path in kept] == ["precious"]


def test_a_server_that_cannot_start_says_why_to_everybody_who_waits(own_room: Room) -> None:
    with (own_room.home() / "data" / "postgresql.auto.conf").open("a") as file:
        file.write("shared_buffers = 'a few'\n")
    problems: list[EmbeddedError] = []

    def start() -> None:
        try:
            own_room.embedded().start()
        except EmbeddedError as error:
            problems.append(error)

    waiting = [threading.Thread(target=start) for _ in range(3)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    assert len(problems) == 3
    assert all("configuration file" in error.message and "server.log" in (error.hint or "") for error in problems)
    eventually(lambda: not list((own_room.home() / "holders.d").iterdir()), "nobody holds the server")


def test_a_missing_password_is_said_and_the_data_is_left_alone(own_room: Room) -> None:
    (own_room.home() / "password").unlink()
    with pytest.raises(EmbeddedError, match="password"):
        own_room.embedded().start()
    assert (own_room.home() / "data" / "PG_VERSION").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_the_supervisor_keeps_nothing_of_whoever_started_it(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room.path)
    held = os.open(room.path, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        with room.embedded() as server:
            for pid in (room.supervisor(), server.pid):
                process = Path(f"/proc/{pid}")
                assert (process / "cwd").readlink() in (Path("/"), room.home() / "data")
                open_files = _open_files(process)
                assert str(room.path) not in open_files
                others = {name for name in open_files if not name.startswith(f"{room.path}/")}
                assert not {name for name in others if name.startswith("/dev/") and name != "/dev/null"}
                assert {(process / "fd" / str(number)).readlink().name for number in (0, 1, 2)} <= {
                    "null", "server.log", "supervisor.log",
                }  # fmt: skip
                assert os.getsid(pid) != os.getsid(0)
    finally:
        os.close(held)


def _open_files(process: Path) -> set[str]:
    found = set()
    for path in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed while we look
            found.add(str(path.readlink()))
    return found
