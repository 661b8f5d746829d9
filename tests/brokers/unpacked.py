"""Brokers that do not come as wheels: unpacked by tools/brokers.py, or on the PATH. Without them tests are skipped."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Where tools/brokers.py unpacks packages.
FOLDER = Path(os.environ.get("MENZIL_TEST_BROKERS") or ROOT / "build" / "brokers")
_PLACES = ("usr/sbin", "usr/bin", "sbin", "bin")
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def program(name: str) -> Path | None:
    """Return where a program is: in the folder of unpacked packages first, then on the PATH."""
    for place in _PLACES:
        if (found := FOLDER / place / name).exists():
            return found
    on_path = shutil.which(name) or shutil.which(name, path=_SYSTEM)
    return Path(on_path) if on_path else None


def environment() -> dict[str, str]:
    """Return the environment for an unpacked program: it finds the libraries that were unpacked with it."""
    libraries = [str(path) for path in (FOLDER / "usr" / "lib").glob("*-linux-gnu*") if path.is_dir()]
    if not libraries:
        return dict(os.environ)
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": ":".join([*libraries, *([before] if before else [])])}


def why_not(package: str) -> str:
    """Return the reason of a skip."""
    return f"no {package}: python3 tools/brokers.py {package} unpacks that of Debian without root"
