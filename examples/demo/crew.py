"""Workers: each a real `menzil worker` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from menzil.worker.family import LIFELINE

#: From here `examples.demo` is imported, also by a worker.
ROOT = str(Path(__file__).resolve().parents[2])


class Hand:
    """One worker, what it said so far, and how it ends."""

    def __init__(self, name: str, dsn: str, arguments: tuple[str, ...], lifeline: int) -> None:
        self.name = name
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # open for as long as the worker lives
        command = [sys.executable, "-m", "menzil", "worker", *arguments, "--dsn", dsn, "--name", name]
        path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
        # A session of its own: a key like Ctrl-C reaches the demo alone, which ends its workers.
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            env={**os.environ, LIFELINE: str(lifeline), "PYTHONPATH": path},
            pass_fds=(lifeline,),
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    def said(self, event: str) -> str | None:
        """The last line of its log about this event, without the time."""
        lines = [line.partition("Z ")[2] for line in self.log().splitlines()]
        return next((line for line in reversed(lines) if event in line.split()[1:2]), None)

    def log(self) -> str:
        """Everything it said."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def kill(self) -> None:
        """Kill it as a crash would: without a word."""
        self.process.kill()
        self.process.wait()

    def term(self) -> None:
        """Ask it to end."""
        self.process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """End it, politely first."""
        if self.process.poll() is None:
            self.term()
            self.term()  # a second signal: hand everything back at once
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()


class Crew:
    """All workers of a show. They end with this process, however it ends: a pipe tells them that it is gone."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._reading, self._writing = os.pipe()
        self.hands: list[Hand] = []

    def start(self, name: str, *arguments: str) -> Hand:
        """Start a worker."""
        hand = Hand(name, self._dsn, arguments, self._reading)
        self.hands.append(hand)
        return hand

    def close(self) -> None:
        """End them all."""
        for hand in self.hands:
            hand.close()
        os.close(self._reading)
        os.close(self._writing)
