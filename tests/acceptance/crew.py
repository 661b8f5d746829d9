"""Real worker processes, and waiting for what they do: always with a deadline, never for a fixed time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

HERE = Path(__file__).parent
PATIENCE = 60.0


def until(condition: Callable[[], Any], what: str = "", seconds: float = PATIENCE) -> Any:
    """Ask again and again until the answer is yes."""
    ends = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < ends, f"waited in vain: {what or condition}"
        time.sleep(0.01)
    return answer


class Process:
    """One `menzil worker`, and what it says."""

    def __init__(self, arguments: list[str], env: dict[str, str], cwd: Path = HERE) -> None:
        command = [sys.executable, "-m", "menzil", "worker", *arguments]
        self.process = subprocess.Popen(
            command, cwd=cwd, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    @property
    def pid(self) -> int:
        return self.process.pid

    def says(self, words: str, seconds: float = PATIENCE) -> str:
        """Wait for a line with these words."""

        def look() -> str | None:
            found = next((line for line in list(self.lines) if words in line), None)
            assert found or self.process.poll() is None or self._reader.is_alive(), "\n".join(self.lines)
            return found

        try:
            line: str = until(look, words, seconds)
        except AssertionError:
            raise AssertionError(f"never said {words!r}:\n" + "\n".join(self.lines)) from None
        return line

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as the out-of-memory killer does."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def ends(self, seconds: float = PATIENCE) -> int:
        """Wait for its end and return the exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("it does not end:\n" + "\n".join(self.lines)) from None
        self._reader.join(PATIENCE)
        return code

    def stop(self) -> int:
        """Ask it to stop, and wait."""
        self.send(signal.SIGTERM)
        return self.ends()


class Crew:
    """Workers on one database, and what can be seen of their work."""

    def __init__(self, dsn: str, place: Path) -> None:
        self.dsn = dsn
        self.trace, self.gate = place / "trace", place / "gate"
        self.env = {"MENZIL_DSN": dsn, "TRACE": str(self.trace), "GATE": str(self.gate)}
        self.processes: list[Process] = []
        self.channels: list[str] = []
        self.conn = psycopg.connect(dsn, autocommit=True)

    def start(self, *arguments: str, app: str | None = "apps:app", ready: bool = True, **env: str) -> Process:
        """Start a worker for the channels used so far, and wait until it says that it has started."""
        if app and self.channels and "--channels" not in arguments:
            arguments = (*arguments, "--channels", ",".join(self.channels))
        process = Process([*([app] if app else []), *arguments], {**self.env, **env})
        self.processes.append(process)
        if ready:
            process.says("started")
        return process

    def drain(self, *arguments: str, app: str | None = "apps:app") -> Process:
        """Run a worker until nothing is due."""
        process = self.start("--once", *arguments, app=app)
        assert process.ends() == 0, "\n".join(process.lines)
        return process

    def ask(self, query: str, *values: Any) -> Any:
        """Ask the database for one value."""
        row = self.conn.execute(query, values or None).fetchone()
        return None if row is None else row[0]

    def send(self, channel: str, *payloads: Any) -> list[int]:
        """Send to a channel, made if it is not there."""
        if not self.ask("select exists (select from menzil.channels where name = %s)", channel):
            self.ask("select menzil.channel_set(%s)", channel)
        if channel not in self.channels:
            self.channels.append(channel)
        with psycopg.connect(self.dsn) as conn:
            rows = [
                conn.execute("select menzil.send(%s, to_jsonb(%s::text))", (channel, body)).fetchone()
                for body in payloads
            ]
        return [row[0] for row in rows if row]

    def traced(self, word: str = "begun", channel: str | None = None) -> list[list[str]]:
        """What handlers wrote: word, channel, id, attempt, process."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        found = [line.split() for line in lines]
        return [line for line in found if line[0] == word and (channel is None or line[1] == channel)]

    def completed(self, channel: str) -> int:
        count: int = self.ask(
            "select count(*) from menzil.archive where channel = %s and status = 'completed'", channel
        )
        return count

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            print(f"--- worker {process.pid} said", *process.lines, sep="\n")  # shown when the test failed
        self.conn.close()


def crew_on(dsn: str, place: Path) -> Generator[Crew, None, None]:
    crew = Crew(dsn, place)
    try:
        yield crew
    finally:
        crew.close()
