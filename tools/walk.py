#!/usr/bin/env python3
"""Walk tutorials in empty folders as their readers do, and print the seconds of each step.

The steps are in the page: a comment `walk:` before a block says what it is. Without options everything is fresh: a
wheel of this tree, a folder, a .venv, a database. `--here` leaves out what a page marks as `install` and uses this
Python. Prints a line per step; with `--transcript FILE` also what each command said. Exits with 1 where the path ends.

    install, run        commands of a shell, in the folder of the walk
    environment         commands that set variables, up to the next program that stays: then a second terminal begins
    background URL      a program that stays, from when the URL answers
    file, append PATH   what the reader writes into a file
    shows               lines that the last commands have printed, in this order
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

# Run as a program, this file is found beside the other tools and not in a package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.wheels import ROOT, build

PAGES = {name: ROOT / "docs" / "tutorials" / f"{name}.md" for name in ("fastapi", "django", "operator")}
BLOCK = re.compile(r"<!-- walk: (\w+)(?: (\S+))? -->\n```\w*\n(.*?)```", re.DOTALL)
#: Seconds that a page may take, and that one command may.
MOST, LONGEST = 900, 600
#: What the examples listen on; another port takes its place.
PORT = "8000"


class LostError(Exception):
    """The path ends here; the text says why."""


class Step(NamedTuple):
    """A block of a page."""

    kind: str
    word: str
    text: str


def steps(page: str) -> list[Step]:
    """What the reader does, in order."""
    found = [Step(*one) for one in BLOCK.findall(page)]
    if page.count("<!-- walk:") != len(found):
        raise LostError("A comment `walk:` stands before no block.")
    return found


class Walk:
    """One walk through one page."""

    def __init__(self, place: Path, environ: dict[str, str], *, is_here: bool, transcript: Path | None) -> None:
        self.place, self.environ, self._is_here, self._transcript = place, environ, is_here, transcript
        self._login = dict(environ)
        self._said = ""
        with contextlib.closing(socket.socket()) as door:
            door.bind(("127.0.0.1", 0))
            self._port = str(door.getsockname()[1])
        if is_here:
            (place / ".venv").symlink_to(sys.prefix)

    def go(self, page: str) -> None:
        with ExitStack() as stack:
            for step in steps(page):
                began = time.monotonic()
                text = step.text.replace(PORT, self._port) if step.kind in ("run", "background") else step.text
                match step.kind:
                    case "install" | "run":
                        if step.kind == "run" or not self._is_here:
                            self._run(text)
                    case "environment":
                        self._learn(text)
                    case "background":
                        stack.enter_context(self._staying(text, step.word.replace(PORT, self._port)))
                        self.environ = dict(self._login)  # a second terminal does not know what the first one set
                    case "file" | "append":
                        with (self.place / step.word).open("a" if step.kind == "append" else "w") as file:
                            file.write(text)
                    case "shows":
                        self._check(step.text)
                    case other:
                        raise LostError(f"No step is called {other!r}.")
                first = step.text.strip().splitlines()[0] if step.kind not in ("file", "append") else step.word
                print(f"{time.monotonic() - began:7.1f} s  {step.kind} {first}", flush=True)

    def _run(self, text: str) -> None:
        try:
            done = subprocess.run(
                ["bash", "-e", "-c", text], cwd=self.place, env=self.environ, text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=LONGEST, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LostError(f"This took more than {LONGEST} s:\n{text}") from None
        self._said = done.stdout
        if self._transcript is not None:
            with self._transcript.open("a") as file:
                file.write("".join(f"$ {line}\n" for line in text.splitlines()) + done.stdout)
        if done.returncode:
            raise LostError(f"This ended with {done.returncode}:\n{text}{done.stdout}")

    def _learn(self, text: str) -> None:
        said = subprocess.run(
            ["bash", "-e", "-c", f"{text}\nenv -0"], cwd=self.place, env=self.environ, text=True,
            stdout=subprocess.PIPE, check=True,
        ).stdout  # fmt: skip
        self.environ = dict(line.split("=", 1) for line in said.split("\0") if "=" in line)

    def _check(self, text: str) -> None:
        rest = self._said
        for line in text.strip().splitlines():
            if line not in rest:
                raise LostError(f"The page shows {line!r}; the commands said:\n{self._said}")
            rest = rest.partition(line)[2]

    @contextlib.contextmanager
    def _staying(self, text: str, url: str) -> Iterator[None]:
        log = self.place / "background.log"
        with log.open("w") as out:
            one = subprocess.Popen(
                ["bash", "-c", f"exec {text}"], cwd=self.place, env=self.environ, stdout=out, stderr=subprocess.STDOUT
            )
        try:
            deadline = time.monotonic() + 60
            while not _answers(url):
                if one.poll() is not None or time.monotonic() > deadline:
                    raise LostError(f"{url} does not answer:\n{log.read_text()}")
                time.sleep(0.1)
            yield
        finally:
            one.send_signal(signal.SIGINT)
            try:
                one.wait(30)
            except subprocess.TimeoutExpired:
                one.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def existing_server(place: Path) -> Iterator[dict[str, str]]:
    """A PostgreSQL as a DBA gives it: a database and its owner, who is no superuser. PGBIN says which version."""
    import psycopg

    from menzil.embedded import Embedded

    server = Embedded(place / "server").start()
    try:
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("create role dba login createrole password 'between us'")
            conn.execute("create database shop owner dba")
            host, port = conn.info.host, str(conn.info.port)
            print(f"           PostgreSQL {conn.execute('show server_version').fetchone()[0]}", flush=True)  # type: ignore[index]
        yield {"PGHOST": host, "PGPORT": port, "PGUSER": "dba", "PGPASSWORD": "between us", "PGDATABASE": "shop"}
    finally:
        server.close(wait=30)


def walk(name: str, *, is_here: bool, transcript: Path | None = None) -> float:
    """Walk a page; return the seconds."""
    with tempfile.TemporaryDirectory(prefix="walk-", ignore_cleanup_errors=True) as made, ExitStack() as stack:
        place = Path(made)
        place.chmod(0o755)  # under root another account runs the server and must pass through
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("MENZIL_", "PG", "PYTHONPATH"))}
        environ = {**kept, "MENZIL_PG_DIR": str(place / "pg")}
        if name == "operator":
            environ |= stack.enter_context(existing_server(place))
        if not is_here:
            environ |= _wheel(place)
        began = time.monotonic()
        folder = place / "project"
        folder.mkdir()
        path = Walk(folder, environ, is_here=is_here, transcript=transcript)
        stack.callback(_stop_server, path)
        path.go(PAGES[name].read_text())
        return time.monotonic() - began


def _wheel(place: Path) -> dict[str, str]:
    """Variables that let `pip install menzil` take the wheels of this tree, and no other version."""
    wheel, sdist = build(place)
    sdist.unlink()
    (place / "constraints.txt").write_text(f"menzil=={wheel.name.split('-')[1]}\n")
    return {"PIP_FIND_LINKS": str(place), "PIP_CONSTRAINT": str(place / "constraints.txt")}


def _stop_server(path: Walk) -> None:
    if (Path(path.environ["MENZIL_PG_DIR"])).exists():
        command = [str(path.place / ".venv" / "bin" / "menzil"), "pg", "stop"]
        subprocess.run(command, env=path.environ, capture_output=True, check=False)


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument(
        "page", nargs="*", choices=[*PAGES, []], help="fastapi, django, operator; all when none is named"
    )
    given.add_argument("--here", action="store_true", help="with this Python: no wheel, no .venv")
    given.add_argument("--transcript", type=Path, metavar="FILE", help="write what each command said")
    said = given.parse_args()
    for name in said.page or PAGES:
        print(f"{name}:", flush=True)
        try:
            took = walk(name, is_here=said.here, transcript=said.transcript)
            if took > MOST:
                raise LostError(f"It took {took:.0f} s, more than {MOST}.")
        except LostError as lost:
            print(f"walk: {lost}", file=sys.stderr)
            return 1
        print(f"{took:7.1f} s  together", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
