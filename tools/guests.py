#!/usr/bin/env python3
"""Make environments for tests that .venv cannot run: python3 tools/guests.py

    build/django6   Django 6 with what menzil needs, for tests/integration/django; needs Python 3.12 or later
    build/pyright   basedpyright, for the typed tests of tests/unit

An environment that is there and works costs nothing. One that cannot be made is left out. Prints a sentence for each
and always exits with 0: where it is missing, its tests are skipped with a reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
#: Seconds for one environment. basedpyright brings Node.js, 90 MB.
PATIENCE = 600


class Guest(NamedTuple):
    """An environment: Pythons it may be made of, the best first; what is installed; what shows that it works."""

    name: str
    pythons: tuple[str, ...]
    packages: tuple[str, ...]
    proof: tuple[str, ...]


GUESTS = (
    Guest(
        "django6",
        ("3.13", "3.12", "3.14"),
        ("django>=6,<7", "psycopg[binary,pool]", "click", "httptools"),
        ("python", "-c", "import click, django, httptools, psycopg_pool; assert django.VERSION[0] == 6"),
    ),
    Guest("pyright", ("3.11", "3.12", "3.13"), ("basedpyright==1.40.2",), ("basedpyright", "--version")),
)


def find(version: str) -> str | None:
    """A Python of this version: this one, one of pyenv, or one on the PATH."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for found in (*sorted(root.glob(f"versions/{version}.*/bin/python{version}")), shutil.which(f"python{version}")):
        # A name on the PATH may be a shim that leads nowhere, so it has to answer first.
        if found and _works(str(found), "-c", "import ensurepip, venv"):
            return str(found)
    return None


def prepared(guest: Guest, folder: Path) -> str:
    """Make the environment unless it works already; say what came of it."""
    if _proved(guest, folder):
        return "is there"
    found = next(filter(None, map(find, guest.pythons)), None)
    if found is None:
        return f"is left out: no Python {' or '.join(guest.pythons)} is on this machine"
    shutil.rmtree(folder, ignore_errors=True)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
    try:
        for command in ((found, "-m", "venv", folder), (*pip, *guest.packages)):
            words = [str(word) for word in command]
            subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
        if _proved(guest, folder):
            return f"is made with {found}"
        why = f"{guest.proof[0]} does not answer"
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        why = re.sub(r"https?://\S+", "the index", why)  # an address may hold a password
    except (OSError, subprocess.TimeoutExpired) as error:
        why = f"{type(error).__name__} while it was made"
    shutil.rmtree(folder, ignore_errors=True)
    return f"is left out: {why}"


def _proved(guest: Guest, folder: Path) -> bool:
    return _works(str(folder / "bin" / guest.proof[0]), *guest.proof[1:])


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def main() -> int:
    BUILD.mkdir(exist_ok=True)
    for guest in GUESTS:
        print(f"build/{guest.name} {prepared(guest, BUILD / guest.name)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
