"""Players from the side of the one who measures: processes that are ready before the clock runs."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from psycopg.conninfo import conninfo_to_dict

from bench.before import ROOT, Before

_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
PATIENCE = 60.0


class PlayerError(Exception):
    """A player failed, or did not do all of it."""


def environment(dsn: str, *, hurried: bool = False) -> dict[str, str]:
    """How a player finds the database; `hurried`: nothing it commits waits for the disk."""
    parts = conninfo_to_dict(dsn)
    found = {variable: str(parts[name]) for name, variable in _VARIABLES.items() if name in parts}
    if hurried:
        found["PGOPTIONS"] = "-c synchronous_commit=off"
    return os.environ | found


def run(
    command: Sequence[str],
    dsn: str,
    *,
    hurried: bool = False,
    patience: float = PATIENCE,
    before: Before | None = None,
) -> str:
    """Run a process to its end, from the files of 0.1.0 if they are given; what it wrote."""
    try:
        done = subprocess.run(
            command,
            cwd=before.tree if before else ROOT,
            env=environment(dsn, hurried=hurried) | (before.environment if before else {}),
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PlayerError(f"{_called(command)} took more than {patience:.0f} s.") from None
    if done.returncode:
        raise PlayerError(f"{_called(command)}: {(done.stderr.strip() or 'no word').splitlines()[-1]}")
    return done.stdout


def _called(command: Sequence[str]) -> str:
    return " ".join(command[-3:])


class Playing:
    """A player that waits to be asked."""

    def __init__(self, command: Sequence[str], dsn: str) -> None:
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115  # closed by __exit__
        self._command = list(command)
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=environment(dsn),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())
        self._lines.put("")  # the end

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the caller that waits for the answer finds its end
            print(line, file=self._process.stdin, flush=True)

    def hear(self, patience: float = PATIENCE) -> str:
        """The next line it says."""
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise PlayerError(f"{_called(self._command)} says nothing for {patience:.0f} s.") from None
        if not line:
            self._log.seek(0)
            words = self._log.read().decode(errors="replace").strip() or "no word"
            raise PlayerError(f"{_called(self._command)} ended: {words.splitlines()[-1]}")
        return line

    def quiet(self, seconds: float) -> None:
        """Read what it says until it says nothing for so long."""
        with suppress(queue.Empty):
            while True:
                self._lines.get(timeout=seconds)

    def ready(self) -> None:
        while self.hear() != "ready":
            pass

    def told(self, patience: float = PATIENCE) -> dict[str, Any]:
        """An answer of several facts."""
        facts: dict[str, Any] = json.loads(self.hear(patience))
        return facts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
