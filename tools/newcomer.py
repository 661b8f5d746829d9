#!/usr/bin/env python3
"""Walk the README's path as a newcomer, from install to a webhook seen in the console, and print the seconds.

The commands are those of the README, read from the blocks that a comment `newcomer:` marks, so a path that no longer
works fails here. Without options everything is fresh: a clone of this repository, its .venv, its database. `--here`
leaves out clone and install, runs the commands with this Python and on free ports, and uses the database of MENZIL_DSN.
Emits a line per step on stdout. Exits with 1 when a step fails or when it all takes more than five minutes.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- newcomer: (\w+) terminal -->\n```sh\n(.*?)```", re.DOTALL)
#: Seconds that all of it may take, that one command may, and that a program may take to be ready.
MOST, LONGEST, PATIENCE = 300, 1800, 120
CONSOLE, RECEIVER = 8642, 9000


class LostError(Exception):
    """The path ends here; the text says why."""


def commands(readme: str) -> dict[str, list[str]]:
    """What a reader types into each terminal, without the comments."""
    found = {
        name: [line.split("  #")[0].strip() for line in block.splitlines()] for name, block in BLOCK.findall(readme)
    }
    if sorted(found) != ["first", "second", "third"]:
        raise LostError(f"The README marks the terminals {sorted(found)}, not first, second and third.")
    return found


def free_port() -> int:
    with closing(socket.socket()) as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


class Walk:
    """One walk: where it happens, what its commands become there, and how long each step took.

    `installs`: menzil is not there yet.
    """

    def __init__(self, place: Path, environ: dict[str, str], swaps: dict[str, str], *, installs: bool) -> None:
        self.place, self.environ, self.swaps, self.installs = place, environ, swaps, installs
        self.began = time.monotonic()

    def told(self, command: str) -> str:
        """The command as it is run here."""
        for old, new in self.swaps.items():
            command = command.replace(old, new)
        return command

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        print(f"{time.monotonic() - began:7.1f} s  {name}", flush=True)

    def run(self, command: str) -> None:
        with self.step(command):
            one = subprocess.Popen(
                self.told(command), shell=True, cwd=self.place, env=self.environ, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                said, _ = one.communicate(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                os.killpg(one.pid, signal.SIGKILL)  # with all that it started
                raise LostError(f"`{command}` took more than {LONGEST} s.") from None
        if one.returncode:
            raise LostError(f"`{command}` ended with {one.returncode}: {said}")

    @contextmanager
    def running(self, command: str, log: Path, ready: str) -> Iterator[None]:
        """Keep a program running, from when it says that it is ready."""
        with log.open("w") as out:
            one = subprocess.Popen(
                f"exec {self.told(command)}", shell=True, cwd=self.place, env=self.environ, stdout=out, stderr=out
            )
        try:
            with self.step(command):
                self.until(lambda: ready in log.read_text(), lambda: f"`{command}` says: {log.read_text()}", one)
            yield
        finally:
            one.send_signal(signal.SIGINT)
            try:
                one.wait(60)
            except subprocess.TimeoutExpired:
                one.kill()

    def until(
        self, look: Callable[[], bool], trouble: Callable[[], str], one: subprocess.Popen[bytes] | None = None
    ) -> None:
        deadline = time.monotonic() + PATIENCE
        while not look():
            if time.monotonic() > deadline or (one is not None and one.poll() is not None):
                raise LostError(trouble())
            time.sleep(0.05)


def seen(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def walk(path: Walk, logs: Path, port: int) -> None:
    """From the first command to the message on a page of the console."""
    typed = commands((path.place / "README.md").read_text())
    *setup, up = typed["first"]
    with ExitStack() as stack:
        for command in setup if path.installs else []:
            path.run(command)
        stack.enter_context(path.running(up, logs / "up", f"http://127.0.0.1:{port}/"))
        stack.enter_context(path.running(typed["second"][0], logs / "receiver", "waiting at"))
        for command in typed["third"]:
            path.run(command)
        with path.step("the receiver has the order"):
            path.until(lambda: '"order": 17' in (logs / "receiver").read_text(), lambda: (logs / "up").read_text())
        with path.step("the console shows that it completed"):
            page = f"http://127.0.0.1:{port}/messages/1"
            path.until(lambda: "It completed at" in seen(page), lambda: f"{page} does not say so.")
        took = time.monotonic() - path.began
        print(f"{took:7.1f} s  together", flush=True)
        if took > MOST:
            raise LostError(f"That is more than {MOST} s.")


def fresh(logs: Path) -> Walk:
    """A clone in an empty folder, and an environment that names no database."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MENZIL_", "PG", "PYTHONPATH"))}
    path = Walk(logs / "menzil", {**kept, "MENZIL_PG_DIR": str(logs / "pg")}, {}, installs=True)
    with path.step("git clone"):
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(path.place)], check=True)
    return path


def here(port: int) -> Walk:
    """This tree and this Python, with ports of its own."""
    menzil = f"{sys.executable} -m menzil"
    other = str(free_port())
    swaps = {".venv/bin/menzil up": f"{menzil} up --port {port}", ".venv/bin/menzil": menzil,
             ".venv/bin/python examples/receiver.py": f"{sys.executable} examples/receiver.py {other}",
             f":{RECEIVER}/": f":{other}/"}  # fmt: skip
    return Walk(ROOT, dict(os.environ), swaps, installs=False)


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told = "no clone, no install, free ports, the database of MENZIL_DSN"
    given.add_argument("--here", action="store_true", help=told)
    is_here = given.parse_args().here
    with tempfile.TemporaryDirectory(prefix="newcomer-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)  # under root another account runs the server and must pass through
        port = free_port() if is_here else CONSOLE
        try:
            walk(here(port) if is_here else fresh(Path(place)), Path(place), port)
        except LostError as lost:
            print(f"newcomer: {lost}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
