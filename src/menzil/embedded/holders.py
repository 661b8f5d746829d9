"""The users of a server: a shared lock that keeps it running, and a file with the name of each."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from pathlib import Path
from typing import NamedTuple

from menzil.embedded.errors import EmbeddedError
from menzil.embedded.home import Home, read
from menzil.embedded.locks import is_locked, open_lock, try_exclusive, try_shared
from menzil.embedded.postmaster import process_lives


class User(NamedTuple):
    """A process that uses the server."""

    pid: int
    program: str


class Hold:
    """This process's hold on a server; the server runs at least as long as the hold lasts."""

    def __init__(self, home: Home, deadline: float) -> None:
        self._owner = os.getpid()
        self._lock = open_lock(home.holders)
        while not try_shared(self._lock):  # the supervisor has it alone while it stops the server
            if time.monotonic() > deadline:
                os.close(self._lock)
                raise EmbeddedError("The server is still stopping.", hint=f"its log is {home.log}")
            time.sleep(0.01)
        try:
            self._tag, self._tag_path = _tag(home)
        except BaseException:
            os.close(self._lock)
            raise

    def release(self) -> None:
        """Let go. Closing, not unlocking: a process forked from this one shares the lock and may still need it."""
        if os.getpid() == self._owner:
            self._tag_path.unlink(missing_ok=True)
        os.close(self._tag)
        os.close(self._lock)


def users(home: Home) -> list[User]:
    """Who uses the server now, by their name tags; tags of the dead are taken down."""
    found = []
    with contextlib.suppress(OSError):
        for path in sorted(home.tags.iterdir()):
            with contextlib.suppress(OSError, ValueError):
                pid = int(path.name.partition("-")[0])
                if is_locked(path):
                    found.append(User(pid, read(path) or "?"))
                elif not process_lives(pid):  # a living owner is about to lock it
                    path.unlink(missing_ok=True)
    return found


def _tag(home: Home) -> tuple[int, Path]:
    home.tags.mkdir(mode=0o700, exist_ok=True)
    path = home.tags / f"{os.getpid()}-{secrets.token_hex(4)}"
    descriptor = open_lock(path)
    try_exclusive(descriptor)
    os.write(descriptor, _program().encode(errors="replace"))
    return descriptor, path


def _program() -> str:
    """The program's name alone: its arguments may hold secrets."""
    path = Path(sys.argv[0] if sys.argv else "")
    name = path.parent.name if path.name == "__main__.py" else path.name
    return name if name not in ("", "-", "-c", "-m") else "python"
