"""Starts a supervisor that outlives us: it keeps nothing of ours, neither terminal nor directory nor open file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from menzil.embedded.errors import EmbeddedError
from menzil.embedded.home import Home
from menzil.embedded.plan import INHERITED, Plan

BOOT = Path(__file__).resolve().with_name("boot.py")


def spawn(home: Home, plan: Plan, lock: int) -> None:
    """Start a supervisor; the lock we took for it stays taken, because the open file passes over to it."""
    plan.save(home)
    home.stop.unlink(missing_ok=True)
    os.ftruncate(lock, 0)  # the pid of the one before
    python = sys.executable or shutil.which("python3")
    if not python:
        raise EmbeddedError("There is no Python interpreter to run the supervisor.", hint="put python3 on the PATH")
    log = os.open(home.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        subprocess.run(
            [python, "-I", "-S", "-X", "utf8", str(BOOT), str(home.path), str(lock)],
            env={name: os.environ[name] for name in INHERITED if name in os.environ},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[lock],
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise EmbeddedError(
            f"The supervisor cannot be started: {error}.", hint=f"read {home.supervisor_log}"
        ) from error
    finally:
        os.close(log)
