"""Looks at a server and stops it, from outside: what `menzil pg status|dsn|stop` do."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple

from menzil.embedded.errors import EmbeddedError
from menzil.embedded.holders import User, users
from menzil.embedded.home import Home, read
from menzil.embedded.locks import is_locked, open_lock, try_exclusive
from menzil.embedded.places import check_ours, homes
from menzil.embedded.plan import Plan
from menzil.embedded.spawn import spawn


class Status(NamedTuple):
    """A running server as seen from outside."""

    home: Home
    pid: int
    port: int
    version: str
    durable: bool
    pinned: bool
    supervisor: int | None
    users: list[User]


def status(directory: Path) -> Status | None:
    """The server that runs in this data directory, newest major version first; None when there is none."""
    for home in homes(directory):
        check_ours(home.path)
        server = home.ready()
        if server:
            plan = Plan.load(home)
            version = plan.version if plan else home.path.name
            return Status(
                home, server.pid, server.port, version, home.is_durable(), home.pinned.exists(), _supervisor(home),
                users(home),
            )  # fmt: skip
    return None


def stop(directory: Path, *, force: bool = False, timeout: float = 75.0) -> list[User]:
    """Unpin the servers of this data directory and see them stop; returns who still keeps one running.

    With `force` they stop even while processes use them.
    """
    keeping: list[User] = []
    for home in homes(directory):
        check_ours(home.path)
        home.pinned.unlink(missing_ok=True)
        if is_locked(home.supervisor) or home.ready():
            keeping += _stop(home, force, time.monotonic() + timeout)
    return keeping


def _stop(home: Home, force: bool, deadline: float) -> list[User]:
    _give_supervisor(home)
    if force:
        home.stop.touch(mode=0o600)
    while is_locked(home.supervisor):
        still = [] if force else users(home)
        if still:
            return still
        if time.monotonic() > deadline:
            raise EmbeddedError("The server does not stop.", hint=f"its log is {home.log}, or try --force")
        time.sleep(0.01)
    return []


def _give_supervisor(home: Home) -> None:
    """A server whose supervisor was killed gets a new one, which then finds no user left and stops it."""
    lock = open_lock(home.supervisor)
    try:
        if try_exclusive(lock):
            plan = Plan.load(home)
            if plan is None:
                raise EmbeddedError(
                    "It is not known how the server was started.", hint="run `menzil pg start`, then stop it"
                )
            spawn(home, plan, lock)
    finally:
        os.close(lock)


def _supervisor(home: Home) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(read(home.supervisor)) if is_locked(home.supervisor) else None
    return None
