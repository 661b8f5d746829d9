"""As whom the server runs. PostgreSQL refuses root, so root lends it a system account; no account is created."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from menzil.embedded.errors import EmbeddedError

# The first that exists. Neither can log in, and neither owns anything of ours but the data directory.
ACCOUNTS = ("postgres", "nobody")

# Prints the first directory among its arguments that it may not walk through.
FIRST_CLOSED = 'for place do [ -x "$place" ] || { printf %s "$place"; exit 1; }; done'


class Account(NamedTuple):
    """An account that lends its rights to the server."""

    name: str
    uid: int
    gid: int

    def process(self) -> dict[str, Any]:
        """Arguments for subprocess: what this account may do, and not what we may."""
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "cwd": "/", "stdin": subprocess.DEVNULL}


def server_account(data: Path | None = None) -> Account | None:
    """The account for the server, or None where it runs as ourselves.

    An existing data directory stays with its owner, also when a better account appears later.
    """
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(OSError):
        there = data.lstat() if data else None
        if there and there.st_uid != 0:
            return Account(_name(there.st_uid), there.st_uid, there.st_gid)
    for name in ACCOUNTS:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedError(
        "PostgreSQL does not run as root, and there is no account postgres or nobody to run it as.",
        hint="run menzil as an ordinary user, or create an account named postgres",
    )


def first_closed(account: Account, place: Path) -> Path | None:
    """The first directory on the way to `place` through which the account may not pass; missing ones do not count."""
    way = [step for step in (*reversed(place.parents), place) if step.exists()]
    command = ["/bin/sh", "-c", FIRST_CLOSED, "sh", *map(str, way)]
    try:
        done = subprocess.run(command, **account.process(), capture_output=True, check=False)
    except OSError as error:  # a container whose only user is root
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and this root may not become {account.name} ({error.strerror}).",
            hint="run menzil as an ordinary user, or give the container more than one user id",
        ) from error
    return Path(os.fsdecode(done.stdout)) if done.returncode else None


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
