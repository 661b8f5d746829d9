"""`menzil up`: everything starts with one command, and one Ctrl-C stops it in order."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from menzil import Menzil
from menzil.embedded.control import status
from tests.acceptance.crew import until
from tests.acceptance.terminal import Terminal
from tests.memory import MEMORY

APP = """
from pathlib import Path
from menzil import Worker

app = Worker()

@app.handler("mail")
def mail(message):
    Path("delivered").write_text(message.payload["to"])
"""


@pytest.fixture
def sit(db: str, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Somebody types `menzil up …` in a directory with a program."""
    (tmp_path / "shop.py").write_text(APP)
    seats: list[Terminal] = []

    def start(*words: str, **env: str) -> Terminal:
        paths = os.pathsep.join(path for path in sys.path if path)
        seats.append(Terminal("up", *words, env={"MENZIL_DSN": db, "PYTHONPATH": paths, **env}, cwd=tmp_path))
        return seats[-1]

    yield start
    for seat in seats:
        seat.close()


def address(seat: Terminal) -> str:
    seat.shows("Ctrl-C stops everything")
    found = re.search(r"^(http://127\.0\.0\.1:\d+/)\r?$", seat.text, re.MULTILINE)
    assert found, seat.text
    return found[1]


def children(pid: int) -> list[int]:
    answer = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in answer.stdout.split()]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_one_command_delivers_and_shows_and_one_ctrl_c_stops_all(
    sit: Callable[..., Terminal], db: str, tmp_path: Path
) -> None:
    with Menzil(db) as mq:
        mq.channel_set("mail")
        mq.send("mail", {"to": "ada"})
    seat = sit("shop:app", "--port", "0")
    url = address(seat)
    until(lambda: (tmp_path / "delivered").exists(), "the delivery")
    assert (tmp_path / "delivered").read_text() == "ada"
    with urllib.request.urlopen(f"{url}healthz", timeout=60) as answer:
        assert answer.status == 200
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert b"<!doctype html>" in answer.read(200).lower()
    ours = children(seat.process.pid)
    assert len(ours) == 2
    seat.press("\x03")
    assert seat.ends() == 0
    assert all(gone(pid) for pid in ours)
    assert "Traceback" not in seat.text
    stopped = seat.text.index("stopped worker=")
    assert seat.text.index("Stopping: the worker, then the rest") < stopped
    with psycopg.connect(db) as conn:
        assert conn.execute("select status from menzil.get_worker_status()").fetchone() == ("stopped",)


@pytest.mark.slow
def test_without_a_database_the_embedded_one_is_started_and_stopped_again() -> None:
    # Not below pytest's own directory: under root another account runs the server and may not pass through it.
    with tempfile.TemporaryDirectory(prefix="mz-up-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        home = Path(place)
        home.chmod(0o755)
        env = {"MENZIL_PG_DIR": str(home / "pg"), "MENZIL_DSN": ""}
        seat = Terminal("up", "--port", "0", env=env, cwd=home)
        try:
            address(seat)
            assert status(home / "pg") is not None
            seat.press("\x03")
            assert seat.ends() == 0
            until(lambda: status(home / "pg") is None, "the server to stop with its last user", 60)
        finally:
            seat.close()


def test_an_empty_database_is_installed_first(fresh_db: str, tmp_path: Path) -> None:
    seat = Terminal("up", "--port", "0", env={"MENZIL_DSN": fresh_db}, cwd=tmp_path)
    try:
        address(seat)
        assert "menzil is installed." in seat.text
        seat.press("\x03")
        assert seat.ends() == 0
    finally:
        seat.close()


def test_a_port_in_use_is_a_sentence(sit: Callable[..., Terminal]) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        seat = sit("--port", port)
        assert seat.ends() == 2
    assert f"Port {port} of this machine cannot be used: Address already in use." in seat.text
    assert "--port 0" in seat.text
    assert "Traceback" not in seat.text


def test_of_two_at_once_one_is_refused_before_it_starts_anything(sit: Callable[..., Terminal]) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    two = [sit("--port", port), sit("--port", port)]
    until(lambda: any("cannot be used" in seat.text for seat in two), "one is refused", 60)
    late = next(seat for seat in two if "cannot be used" in seat.text)
    assert late.ends() == 2
    assert "Ctrl-C" not in late.text
    (early,) = (seat for seat in two if seat is not late)
    assert address(early) == f"http://127.0.0.1:{port}/"
    early.press("\x03")
    assert early.ends() == 0


def test_a_program_that_is_not_there_stops_everything(sit: Callable[..., Terminal]) -> None:
    seat = sit("nowhere:app", "--port", "0")
    assert seat.ends() == 2
    assert "There is no module 'nowhere' here." in seat.text
    assert "The worker ended with exit code 2" in seat.text


def test_a_worker_that_is_killed_takes_the_rest_with_it(sit: Callable[..., Terminal]) -> None:
    seat = sit("--port", "0")
    address(seat)
    ours = children(seat.process.pid)
    for pid in ours:
        if "worker" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)
    assert seat.ends() == 1
    assert "The worker ended with exit code -9" in seat.text
    assert all(gone(pid) for pid in ours)


def test_nothing_is_left_when_it_is_killed_itself(sit: Callable[..., Terminal]) -> None:
    seat = sit("--port", "0")
    address(seat)
    ours = children(seat.process.pid)
    assert len(ours) == 2
    seat.process.kill()
    until(lambda: all(gone(pid) for pid in ours), "the children to follow")


def test_a_terminal_that_is_closed_stops_everything(sit: Callable[..., Terminal]) -> None:
    seat = sit("--port", "0")
    address(seat)
    ours = children(seat.process.pid)
    seat.process.send_signal(signal.SIGHUP)
    assert seat.ends() == 0
    assert all(gone(pid) for pid in ours)


def test_without_the_console_only_the_worker_runs(sit: Callable[..., Terminal]) -> None:
    seat = sit("--no-console")
    seat.shows("started worker=")
    assert len(children(seat.process.pid)) == 1
    seat.process.send_signal(signal.SIGTERM)
    assert seat.ends() == 0


def test_the_password_of_a_database_is_in_no_command_line(sit: Callable[..., Terminal], db: str) -> None:
    seat = sit("--port", "0")
    address(seat)
    secret = re.search(r"password=(\S+)", db)
    assert secret
    for pid in [seat.process.pid, *children(seat.process.pid)]:
        with suppress(FileNotFoundError):
            assert secret[1] not in Path(f"/proc/{pid}/cmdline").read_text()
    seat.press("\x03")
    assert seat.ends() == 0
