"""Another wall clock for a process: a small library that is compiled here and loaded before libc.

A worker gets a clock that is two hours off. The server of a run gets one by which a month ends in the middle of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from menzil.embedded import binaries

SOURCE = Path(__file__).with_name("clock.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")
#: The wrapped server and what its supervisor asks for besides.
TOOLS = ("initdb", "pg_ctl")


def compiled(place: Path) -> Path | None:
    """Compile the library into this directory; None where there is no compiler."""
    target = place / "clock.so"
    if COMPILER is None:
        return None
    command = [COMPILER, "-shared", "-fPIC", "-O2", "-o", str(target), str(SOURCE), "-ldl"]
    return target if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def shifted(library: Path, seconds: int) -> dict[str, str]:
    """Environment variables for a process with a shifted clock."""
    return {"LD_PRELOAD": str(library), "TORTURE_SHIFT": str(seconds)}


def until_the_month_ends() -> float:
    """Seconds of the real clock until the next month begins (UTC)."""
    now = datetime.now(UTC)
    begins = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    return (begins - now).total_seconds()


def wrapped(place: Path, library: Path, seconds: int) -> Path:
    """A directory with binaries of PostgreSQL whose server has a shifted clock: what PGBIN is to name."""
    real, wraps = binaries.find().bin, place / "bin"
    wraps.mkdir(mode=0o755)
    for tool in TOOLS:
        (wraps / tool).symlink_to(real / tool)
    words = " ".join(f"{name}={value}" for name, value in shifted(library, seconds).items())
    server = wraps / "postgres"
    server.write_text(f'#!/bin/sh\nexec env {words} {real / "postgres"} "$@"\n')
    server.chmod(0o755)
    return wraps


@contextmanager
def in_use(directory: Path | None) -> Iterator[None]:
    """Let a server that is started meanwhile, and all its lives, use these binaries."""
    before = os.environ.get("PGBIN")
    if directory is not None:
        os.environ["PGBIN"] = str(directory)
    try:
        yield
    finally:
        os.environ.pop("PGBIN", None)
        if before is not None:
            os.environ["PGBIN"] = before
