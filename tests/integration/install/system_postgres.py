"""A throw-away server from binaries that are already on the machine, to test a release that pip does not bring.

PGBIN names the directory of initdb and postgres; without it, where Debian puts PostgreSQL 15 is tried.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.memory import MEMORY

PGBIN = Path(os.environ.get("PGBIN", "/usr/lib/postgresql/15/bin"))


def missing() -> str | None:
    """Return why there is no such server here, or None when there is."""
    if not (PGBIN / "initdb").exists():
        return f"no PostgreSQL binaries in {PGBIN}; set PGBIN to test with another release"
    if os.geteuid() == 0 and _unprivileged() is None:
        return "PostgreSQL refuses to run as root, and there is no user postgres to run it as"
    return None


@contextmanager
def system_postgres() -> Iterator[str]:
    """Start a server on a socket in a temporary directory and give its DSN; stop it and clean up afterwards."""
    user = _unprivileged() if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="mz-", dir=MEMORY))
    if user is not None:
        shutil.chown(home, user)
    data = home / "data"
    # Just-in-time compilation is the subject of tests/settings; here it took most of the time.
    settings = f"listen_addresses='' unix_socket_directories={home} fsync=off full_page_writes=off jit=off"
    options = " ".join(f"-c {setting}" for setting in settings.split())

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [str(PGBIN / program), *arguments], check=True, user=user, cwd=home, stdout=subprocess.DEVNULL, timeout=60
        )

    try:
        run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        run("pg_ctl", "-D", str(data), "-l", str(home / "log"), "-w", "-o", options, "start")
        try:
            yield f"host={home} user=postgres dbname=postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home)


def _unprivileged() -> str | None:
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return None
