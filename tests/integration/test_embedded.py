"""The embedded PostgreSQL, from the side of those who use it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
from pathlib import Path

import psycopg
import pytest

from menzil.embedded import Embedded, EmbeddedError
from menzil.embedded.home import Home, socket_dir
from tests.integration.embedded_room import Room, alive, ask, eventually, reaches


def test_a_durable_server_loses_nothing_that_was_committed(empty_room: Room) -> None:
    with empty_room.embedded(durable=True) as server:
        names = ["fsync", "synchronous_commit", "full_page_writes", "data_checksums", "autovacuum"]
        assert [ask(server.dsn, f"show {name}") for name in names] == ["on"] * 5


def test_the_server_is_set_up_for_menzil(empty_room: Room) -> None:
    with empty_room.embedded() as server:
        with psycopg.connect(server.dsn) as connection:
            found: dict[str, str] = dict(connection.execute("select name, setting from pg_settings").fetchall())
            locale = connection.execute("select datcollate, pg_encoding_to_char(encoding) from pg_database").fetchone()
            upper = connection.execute("select upper('ünïcode')").fetchone()
        expected = {"max_connections": "200", "jit": "off", "TimeZone": "UTC", "listen_addresses": "127.0.0.1"}
        assert {name: found[name] for name in expected} == expected
        assert int(found["shared_buffers"]) * 8192 == 256 * 1024 * 1024
        assert int(found["max_wal_size"]) == 2048
        assert locale in {("C", "UTF8"), ("C.UTF-8", "UTF8")}  # before and since the builtin provider
        assert upper == ("ÜNÏCODE",)
        assert server.version == found["server_version"].split()[0]
        assert found["data_directory"] == str(empty_room.data_dir / server.version.split(".")[0] / "data")


def test_both_connection_strings_reach_the_same_server(room: Room) -> None:
    with room.embedded() as server:
        query = "select pg_postmaster_start_time()::text"
        assert ask(server.dsn, query) == ask(server.socket_dsn, query)
        assert ask(server.dsn, "show port") == str(server.port)
        assert server.pid == int((room.home() / "data" / "postmaster.pid").read_text().split()[0])


def test_only_those_with_the_password_come_in(room: Room) -> None:
    with room.embedded() as server:
        for dsn in (server.dsn, server.socket_dsn):
            password = psycopg.conninfo.conninfo_to_dict(dsn)["password"]
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(dsn.replace(str(password), "wrong"))
        assert stat.S_IMODE((room.home() / "password").stat().st_mode) == 0o600
        assert stat.S_IMODE((room.home() / "data").stat().st_mode) == 0o700


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_the_password_is_in_no_command_line_and_no_log(room: Room) -> None:
    with room.embedded() as server:
        password = (room.home() / "password").read_text()
        for file in (*Path("/proc").glob("[0-9]*/cmdline"), *room.home().glob("*.log")):
            try:
                text = file.read_text(errors="replace")
            except OSError:
                continue
            assert password not in text
        assert password in server.dsn


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_the_server_inherits_no_variables_that_change_it(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGPORT", "PGDATA", "PGOPTIONS", "LC_MESSAGES", "LANG", "SECRET_OF_OURS"):
        monkeypatch.setenv(name, "7")
    with room.embedded() as server:
        environment = Path(f"/proc/{server.pid}/environ").read_text(errors="replace").split("\0")
        names = {entry.partition("=")[0] for entry in environment if entry}
        # PostgreSQL itself adds the ones about its own files.
        assert not {name for name in names if name.startswith(("LC_", "LANG", "SECRET"))} - {"LC_ALL"}
        assert not {name for name in names if name.startswith("PG")} - {"PGDATA", "PGLOCALEDIR", "PGSYSCONFDIR"}
        assert server.port != 7


def test_data_and_port_are_there_again_after_a_stop(room: Room) -> None:
    with room.embedded() as server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("create table kept as select 42 as answer")
        first_pid, first_dsn = server.pid, server.dsn
    eventually(lambda: not alive(first_pid), "the server stops after its last user")
    with room.embedded() as server:
        assert ask(server.dsn, "select answer from kept") == 42
        assert (server.dsn, server.pid != first_pid) == (first_dsn, True)


def test_a_port_that_somebody_took_meanwhile_is_left_to_them(room: Room) -> None:
    server = room.embedded().start()
    port = server.port
    server.close(wait=20)
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        with room.embedded() as server:
            assert server.port != port
            assert reaches(server.dsn)


def test_eight_processes_that_start_at_once_share_one_server_until_the_last_is_killed(empty_room: Room) -> None:
    users = [empty_room.user() for _ in range(8)]
    got = [user.got() for user in users]
    assert len({(answer["pid"], answer["dsn"]) for answer in got}) == 1
    assert {user.pid for user in empty_room.status().users} == {user.process.pid for user in users}
    supervisor = empty_room.supervisor()
    for user in users[:7]:
        user.kill()
    assert reaches(got[0]["dsn"])
    assert alive(got[0]["pid"])
    users[7].kill()
    eventually(lambda: not alive(got[0]["pid"]) and not alive(supervisor), "server and supervisor end")
    assert not (empty_room.home() / "data" / "postmaster.pid").exists()


def test_a_newcomer_waits_for_a_stop_that_has_begun_and_gets_a_fresh_server(room: Room) -> None:
    pids = set()
    for _ in range(4):  # each start falls somewhere into the stop before it
        with room.embedded() as server:
            assert reaches(server.dsn)
            pids.add(server.pid)
    assert pids


def test_a_forked_child_keeps_the_server_of_its_parent(room: Room) -> None:
    server = room.embedded().start()
    pid, dsn = server.pid, server.dsn
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(ready, 1)  # until the parent closes its end
        os._exit(0)
    os.close(ready)
    server.close(wait=0.5)
    assert reaches(dsn)
    os.close(go)
    os.waitpid(child, 0)
    eventually(lambda: not alive(pid), "the server stops after the child")


@pytest.mark.parametrize("name", ["with spaces and 'quotes'", "Ünïcode-站", 'a,b "c"', "x" * 90])
def test_any_directory_name_will_do(room: Room, name: str) -> None:
    with room.embedded(room.path / name) as server:
        assert ask(server.socket_dsn, "select 1") == 1
        assert ask(server.dsn, "show data_directory").startswith(str(room.path / name))
        home = Home(server.data_dir / server.version.split(".")[0])
        if len(name) > 80 or "," in name:
            assert home.socket_dir.parent == Path("/tmp")
            assert stat.S_IMODE(home.socket_dir.stat().st_mode) == 0o700
        server_port = server.port
        assert home.socket(server_port).is_socket()
    eventually(lambda: not home.socket(server_port).exists(), "the socket is gone")
    eventually(lambda: home.socket_dir == home.data or not home.socket_dir.exists(), "the short directory is gone")


def test_a_relative_directory_is_below_the_current_one(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room.path)
    with room.embedded("pg") as server:
        assert server.data_dir == room.data_dir
        monkeypatch.chdir("/")
        assert reaches(server.dsn)


def test_a_socket_directory_made_by_a_stranger_is_refused(room: Room) -> None:
    long = room.path / ("y" * 90)
    trap = socket_dir(long / room.home().name / "data")
    trap.mkdir(mode=0o755)
    try:
        with pytest.raises(EmbeddedError, match="socket") as caught:
            room.embedded(long).start()
        assert caught.value.hint is not None
    finally:
        trap.rmdir()


def test_who_needs_durability_gets_no_server_without_it(room: Room) -> None:
    user = room.user(durable=False)
    pid = user.got()["pid"]
    with pytest.raises(EmbeddedError, match="durable=False"):
        room.embedded(durable=True).start()
    user.end()
    eventually(lambda: not alive(pid), "the server stops")
    with room.embedded(durable=True) as server:
        assert ask(server.dsn, "show fsync") == "on"
    with room.embedded(durable=False) as server:
        assert reaches(server.dsn)


def test_a_newer_postgresql_leaves_an_older_cluster_alone(empty_room: Room, caplog: pytest.LogCaptureFixture) -> None:
    older = empty_room.data_dir / "11" / "data"
    (older / "global").mkdir(parents=True)
    (older / "global" / "pg_control").write_text("")
    empty_room.data_dir.chmod(0o711)
    (older / "PG_VERSION").write_text("11\n")
    with empty_room.embedded() as server:
        assert ask(server.dsn, "show data_directory") != str(older)
    assert "data of PostgreSQL 11" in caplog.text
    assert sorted(path.name for path in older.iterdir()) == ["PG_VERSION", "global"]


def test_a_closed_server_has_no_connection_string(room: Room) -> None:
    server = room.embedded()
    for _ in range(2):
        with pytest.raises(EmbeddedError, match="not started"):
            _ = server.dsn
        with server:
            assert server.start() is server
        server.close()


def test_a_deleted_directory_takes_its_server_with_it(own_room: Room) -> None:
    server = own_room.embedded().start()
    server.pin()
    pid, supervisor = server.pid, own_room.supervisor()
    shutil.rmtree(own_room.data_dir, ignore_errors=True)
    eventually(lambda: not alive(pid) and not alive(supervisor), "server and supervisor end")
    assert not own_room.data_dir.exists()
    server.close()


def test_a_supervisor_that_is_asked_to_end_stops_its_server(room: Room) -> None:
    with room.embedded() as server:
        pid = server.pid
        os.kill(room.supervisor(), signal.SIGTERM)
        eventually(lambda: not alive(pid), "the server stops")
    assert isinstance(server, Embedded)
