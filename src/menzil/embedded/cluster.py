"""Makes a database cluster and writes its settings; runs inside the supervisor.

A cluster is made beside its place and moved there when it is whole: `data` is either complete or absent, whenever
the power fails. Standard library alone, like everything the supervisor imports.
"""

from __future__ import annotations

import contextlib
import locale
import os
import shutil
import subprocess
import time
from pathlib import Path

from menzil.embedded.home import Home, write
from menzil.embedded.plan import Plan

SETTINGS = {
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "max_connections": "200",
    "jit": "off",
    "autovacuum": "on",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_line_prefix": "%m [%p] ",
    "cluster_name": "menzil",
}
# For tests only: a power cut may destroy the cluster. Given on the command line, so that it shows. A killed process
# still loses nothing, because a commit waits until its log is in the hands of the kernel.
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class StartError(Exception):
    """The server cannot start; says why in one sentence and what to do in another."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def prepare(home: Home, plan: Plan) -> None:
    """Leave a whole cluster behind, made now or long ago, with the settings of today."""
    for remains in home.path.glob("data.new-*"):  # a process was killed while making a cluster
        _remove(remains)
    for remains in home.path.glob("password.*.new"):
        remains.unlink(missing_ok=True)
    if not home.has_cluster():
        _move_aside(home)
        _make(home, plan)
    elif plan.durable and not home.is_durable():
        # What was written with fsync off may still be in memory only; from now on we promise more.
        _run(plan, "initdb", "--sync-only", "-D", str(home.data))
    if not home.password.exists():
        raise StartError(
            f"The password of the server is missing: {home.password}.",
            f"restore that file, or move {home.path} away to begin with an empty server",
        )
    write_settings(home)


def write_settings(home: Home) -> None:
    """Write menzil.conf, which begins with the cluster's own file; what ALTER SYSTEM sets still comes last and wins.

    It lies outside the data directory: root never writes where the account of the server could leave a trap.
    """
    lines = [f"{name} = '{value}'" for name, value in SETTINGS.items()]
    write(home.settings, "\n".join(["include 'data/postgresql.conf'", *lines, ""]), mode=0o644)


def _remove(remains: Path) -> None:
    """Remove half a cluster; its initdb may have outlived its parent and write until it misses what we took away."""
    deadline = time.monotonic() + 5
    while remains.exists() and time.monotonic() < deadline:
        shutil.rmtree(remains, ignore_errors=True)
        time.sleep(0.01)


def _move_aside(home: Home) -> None:
    """A directory that is no cluster makes way. It is kept unless empty: we did not make it, so it is not ours."""
    with contextlib.suppress(FileNotFoundError):
        try:
            home.data.rmdir()
        except (OSError, NotADirectoryError):
            home.data.rename(home.path / f"data.unusable-{time.time_ns()}")


def _make(home: Home, plan: Plan) -> None:
    import secrets  # here, because a warm start does without

    password = secrets.token_urlsafe(24)
    write(home.password, password)
    new = home.path / f"data.new-{secrets.token_hex(4)}"
    handed_over = home.path / f"password.{secrets.token_hex(4)}.new"  # initdb reads it as the account of the server
    try:
        new.mkdir(mode=0o700)
        write(handed_over, password)
        if plan.uid is not None and plan.gid is not None:
            os.chown(new, plan.uid, plan.gid)
            os.chown(handed_over, plan.uid, plan.gid)
        # initdb makes its files durable before it returns, and we keep that: without it a power cut shortly after the
        # first commit could leave a committed row in a cluster whose catalog never reached the disk. It costs 0.2 s.
        careless = [] if plan.durable else ["--no-sync"]
        _run(plan, "initdb", "-D", str(new), "-U", "postgres", "-E", "UTF8", "--data-checksums", *_locale(plan),
             "-A", "scram-sha-256", f"--pwfile={handed_over}", *careless)  # fmt: skip
        new.rename(home.data)
        _sync_directory(home.path)
    finally:
        handed_over.unlink(missing_ok=True)
        shutil.rmtree(new, ignore_errors=True)


def _locale(plan: Plan) -> list[str]:
    if plan.major >= 17:
        return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        return ["--locale=C"]
    return ["--locale=C.UTF-8"]


def _run(plan: Plan, name: str, *arguments: str) -> None:
    done = subprocess.run(
        [plan.tool(name), *arguments], **plan.process(), capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        complaint = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        wrong = next((line for line in complaint if "error:" in line or "FATAL" in line), " ".join(complaint[-1:]))
        raise StartError(f"{name} failed: {wrong}", "make room, or choose another directory with MENZIL_PG_DIR")


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
