"""`menzil pg`, as typed in a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.integration.embedded_room import Room, alive, eventually, reaches

MENZIL = [sys.executable, "-m", "menzil"]


def pg(room: Room, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MENZIL_PG_DIR": str(room.data_dir)}
    return subprocess.run(
        [*MENZIL, "pg", *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_started_server_outlives_its_command_until_it_is_stopped(room: Room) -> None:
    started = pg(room, "start")
    dsn = started.stdout.splitlines()[-1]
    assert (started.returncode, reaches(dsn)) == (0, True)
    assert pg(room, "dsn").stdout.strip() == dsn
    assert reaches(pg(room, "dsn", "--socket").stdout.strip())
    assert pg(room, "start").stdout.splitlines()[-1] == dsn

    running = pg(room, "status")
    assert (running.returncode, "pinned" in running.stdout) == (0, True)
    pid = json.loads(pg(room, "status", "--json").stdout)["pid"]

    stopped = pg(room, "stop")
    assert (stopped.returncode, alive(pid), reaches(dsn)) == (0, False, False)
    assert pg(room, "status").returncode == 1
    assert pg(room, "stop").returncode == 0


def test_the_end_of_start_is_the_end_of_its_output(room: Room) -> None:
    # A shell's pipe ends when the last process that could write to it is gone: were it the server, this would hang.
    command = [*MENZIL, "pg", "start", "--data-dir", str(room.data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as starting:
        output, _ = starting.communicate(timeout=60)
    assert reaches(output.splitlines()[-1])


def test_a_pinned_server_comes_back_by_itself_when_it_is_killed(room: Room) -> None:
    dsn = pg(room, "start").stdout.splitlines()[-1]
    pid = room.status().pid
    os.kill(pid, 9)
    eventually(lambda: reaches(dsn), "the server is back")


def test_stop_names_who_still_uses_the_server_and_leaves_it_to_them(room: Room) -> None:
    user = room.user()
    got = user.got()
    pg(room, "start")
    refused = pg(room, "stop")
    assert refused.returncode == 1
    assert f"pid {user.process.pid}" in refused.stderr
    assert "Hint:" in refused.stderr
    assert reaches(got["dsn"])
    assert json.loads(pg(room, "status", "--json").stdout)["users"][0]["pid"] == user.process.pid
    user.end()
    eventually(lambda: not alive(got["pid"]), "unpinned, it stops after its user")


def test_stop_with_force_asks_nobody(room: Room) -> None:
    got = room.user().got()
    assert pg(room, "stop", "--force").returncode == 0
    assert not alive(got["pid"])
    with room.embedded() as server:  # and the next one begins afresh
        assert reaches(server.dsn)


def test_without_a_server_every_command_says_so_in_one_sentence(room: Room) -> None:
    nothing = pg(room, "dsn")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "menzil pg start" in nothing.stderr
    answer = json.loads(pg(room, "status", "--json").stdout)
    assert answer == {"running": False, "data_dir": str(room.data_dir)}


def test_an_impossible_directory_ends_with_a_hint_and_no_traceback(room: Room) -> None:
    (room.path / "file").write_text("")
    wrong = pg(room, "start", "--data-dir", str(room.path / "file" / "pg"))
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Hint:" in wrong.stderr
    assert "Traceback" not in wrong.stderr
