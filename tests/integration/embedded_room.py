"""A data directory of a test's own, processes that use the server in it, and certainty that nothing is left behind."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from menzil.embedded import Embedded
from menzil.embedded.control import Status, status, stop
from tests.memory import MEMORY

T = TypeVar("T")

# Says what it got, then uses the server until its standard input ends.
USER = """
import json, sys
from menzil.embedded import Embedded
with Embedded(sys.argv[1], durable=sys.argv[2] == "durable") as server:
    print(json.dumps({"pid": server.pid, "port": server.port, "dsn": server.dsn}), flush=True)
    sys.stdin.read()
"""


def eventually(question: Callable[[], T | None], what: str, seconds: float = 60.0) -> T:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = question()
        if answer:
            return answer
        time.sleep(0.01)
    raise AssertionError(f"waited {seconds} s in vain: {what}")


def alive(pid: int) -> bool:
    """Whether a process runs; the test may not be its parent, and a zombie is dead."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    if Path("/proc/self").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ask(dsn: str, query: str) -> Any:
    """The first column of the first row."""
    with psycopg.connect(dsn, connect_timeout=5) as connection:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]


def reaches(dsn: str) -> bool:
    try:
        return bool(ask(dsn, "select true"))
    except psycopg.OperationalError:
        return False


class User:
    """Another process that uses the server."""

    def __init__(self, directory: Path, durable: bool) -> None:
        command = [sys.executable, "-c", USER, str(directory), "durable" if durable else "fast"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def got(self) -> dict[str, Any]:
        """Wait until it has the server, and return its pid, port and dsn."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the user found no server"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def _directory() -> Path:
    """A new directory through which the account of the server may walk, also when the test runs as root."""
    path = Path(tempfile.mkdtemp(prefix="mz", dir=MEMORY or "/tmp"))
    path.chmod(0o711)
    return path


@cache
def _stopped_home() -> Path:
    """The home of a server that ran once and stopped in order; copied, it spares most tests their initdb."""
    path = _directory()
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    server = Embedded(path / "pg", durable=False).start()
    server.close(wait=20)
    return next((path / "pg").iterdir())


class Room:
    """A directory for one test and the server in it: made before, or yet to be made when the room is empty."""

    def __init__(self, *, empty: bool = False) -> None:
        self.path = _directory()
        self.data_dir = self.path / "pg"
        self.users: list[User] = []
        self.directories = {self.data_dir}
        if not empty:
            home = self.data_dir / _stopped_home().name
            for directory in (self.data_dir, home):
                directory.mkdir()
                directory.chmod(0o711)
            for name in ("data", "password"):
                subprocess.run(["cp", "-a", _stopped_home() / name, home / name], check=True)

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        shutil.rmtree(self.path, ignore_errors=True)

    def clear(self) -> None:
        """End everybody and stop every server; the data stays for the next test."""
        for user in self.users:
            if user.process.returncode is None:
                user.kill()
        self.users.clear()
        for directory in self.directories:
            stop(directory, force=True)

    def user(self, *, durable: bool = False) -> User:
        user = User(self.data_dir, durable)
        self.users.append(user)
        return user

    def embedded(self, directory: Path | str | None = None, *, durable: bool = False) -> Embedded:
        server = Embedded(directory or self.data_dir, durable=durable)
        self.directories.add(server.data_dir)
        return server

    def status(self) -> Status:
        return eventually(lambda: status(self.data_dir), "a server")

    def supervisor(self) -> int:
        return eventually(lambda: self.status().supervisor, "a supervisor")

    def home(self) -> Path:
        return next(path for path in self.data_dir.iterdir() if path.name.isdecimal())
