"""The processes of a run. Each dies with the runner, whatever kills that, and is started again when it is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.torture.place import DSN, NAME, PLACE, Place

ROOT = Path(__file__).resolve().parents[2]
_libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """In the child, before it becomes another program."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass
class Child:
    """A part in the play: its name, its command, and the process that plays it now."""

    name: str
    role: str
    command: list[str]
    dsn: str
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    lives: int = 0
    stopped: bool = False  # by SIGSTOP
    done: bool = False  # ended by itself, as it should
    user: str | None = None  # runs as somebody else
    talks: bool = False  # prints a line when it is ready

    def start(self, place: Place) -> None:
        """Begin a life; each has a diary of its own."""
        self.lives += 1
        self.stopped = False
        env = {
            **os.environ, **self.env, PLACE: str(place.path), NAME: f"{self.name}.{self.lives}", DSN: self.dsn,
            "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        with (place.path / "said" / f"{self.name}.txt").open("a") as said:
            self.process = subprocess.Popen(
                [word.replace("{life}", str(self.lives)) for word in self.command],
                cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if self.talks else said,
                stderr=said, text=True, user=self.user, preexec_fn=die_with_parent,
            )  # fmt: skip

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    def kill(self) -> None:
        """End it as the out-of-memory killer does, and bury it."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(30)

    def first_line(self) -> str:
        """What it prints when it is ready."""
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"{self.name} said nothing and ended"
        return line


def python(module: str, *arguments: str) -> list[str]:
    """The command for a module of this lab."""
    return [sys.executable, "-m", f"tests.torture.{module}", *arguments]
