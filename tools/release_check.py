#!/usr/bin/env python3
"""Build wheels and sdist, and try them as people get them: alone, in an empty environment.

The wheel is installed without any extra: what it brings and what an import costs are measured. With the extra
`embedded` the tour of the README runs on it, without the clone. The extras `console` and `lake` find their parts beside
the wheel. The sdist is unpacked, and its unit tests run in it.
Emits a line per step on stdout. Exits with 1 when a step fails, and when a figure is above its limit.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

# Run as a program, this file is found beside the other tools and not in a package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.wheels import PARTS, ROOT, build

DISTRIBUTIONS, IMPORT_MS = 8, 60.0
#: Of the wheel that `pip install menzil` downloads. docs/decisions/0021-parts.md says what was weighed to reach it.
WHEEL_BYTES = 1_000_000
#: Seconds that one command may take.
LONGEST = 1800
TOUR = re.compile(r"In Python, \[examples/outbox\.py\].*?```python\n(.*?)```\n+```\n(.*?)```", re.DOTALL)
#: Milliseconds of processor time, so that a busy machine changes little.
_IMPORT = "import time; began = time.process_time(); {0}; print((time.process_time() - began) * 1000)"
_BENEATH = "import psycopg"
#: Asks for a part that is not there, and prints the hint. The room of Spark names the extra that brings Spark too.
_ASK = "import {0}\nfrom menzil import MenzilError\ntry:\n    {1}\nexcept MenzilError as error:\n    print(error.hint)"
_DOOR = {
    "menzil-console": _ASK.format("menzil.console", "menzil.console.Console"),
    "menzil-lake": _ASK.format("menzil", "import menzil.spark.lake"),
}
#: Spark itself is too large to be installed here.
_WHOLE = (
    "import menzil.console.app as app, pathlib; pathlib.Path(app.__file__).parents[1].joinpath('spark/read.py').open()"
)
_NAMED = {"menzil-lake": "spark"}
#: Names are loaded when they are used, so the client and the worker are measured too.
_OURS = ("import menzil", "from menzil import Menzil", "from menzil import Menzil, Worker")


class FailedError(Exception):
    """The release is not fit to be published; the text says why."""


class Place:
    """A folder of its own, with an environment of its own that knows nothing of the clone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", "MENZIL_", "PG")
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        self.environ["MENZIL_PG_DIR"] = str(folder / "pg")

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        """What it printed; a command that fails ends the check."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=cwd or self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        if done.returncode:
            raise FailedError(
                f"{' '.join(map(str, command[:6]))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout


def look_into(wheel: Path) -> str:
    """The wheel and the parts beside it have the package, all of its SQL, and nothing else or twice."""
    names = Counter[str]()
    for one in wheel.parent.glob("*.whl"):
        with zipfile.ZipFile(one) as file:
            names.update(file.namelist())
    wanted = {
        # The files of these folders travel as one: tools/wheel_sql.py.
        re.sub(r"^(menzil/sql/(?:functions|views))/.*", r"\1.sql", path.relative_to(ROOT / "src").as_posix())
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    inside = {name: count for name, count in names.items() if ".dist-info/" not in name}
    if inside.keys() != wanted:
        raise FailedError(f"The wheel and src differ: {sorted(inside.keys() ^ wanted)[:5]}.")
    if twice := [name for name, count in inside.items() if count > 1]:
        raise FailedError(f"Two wheels have the same file: {twice[:5]}.")
    size = wheel.stat().st_size
    if size > WHEEL_BYTES:
        raise FailedError(f"Above the limit: {size / 1e6:.3f} MB (at most {WHEEL_BYTES / 1e6:g}).\n{breakdown(wheel)}")
    parts = (f"{one.name.split('-')[0]} {one.stat().st_size / 1e6:.3f} MB" for one in parts_of(wheel))
    return ", ".join([f"{size / 1e6:.3f} MB (at most {WHEEL_BYTES / 1e6:g})", *parts])


def parts_of(wheel: Path) -> list[Path]:
    """The wheels beside it."""
    return sorted(path for path in wheel.parent.glob("*.whl") if path != wheel)


def breakdown(wheel: Path) -> str:
    """What each room takes of the wheel, the largest first, in kB: compressed text, and what every file costs besides.

    A file costs its name and headers twice in the zip, and a line with a checksum in RECORD, which does not compress.
    """
    rooms: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as file:
        for one in file.infolist():
            parts = one.filename.split("/")
            inside = len(parts) > 2 and ".dist-info" not in parts[0]
            room = "/".join(parts[:2]) if inside else "RECORD" if parts[-1] == "RECORD" else "others"
            rooms[room] += one.compress_size
            rooms["headers of the zip"] += 76 + 2 * len(one.filename)
    return " " * 30 + ", ".join(f"{room} {size / 1000:.0f}" for room, size in rooms.most_common())


def install(place: Place, wheel: Path, extra: str = "") -> str:
    """Into an empty environment; how many distributions that brings."""
    if not place.python.exists():
        place.run(sys.executable, "-m", "venv", place.folder / "venv")
    pip = (place.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--find-links", wheel.parent)
    place.run(*pip, f"{wheel}{extra}")
    listed = place.run(place.python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check")
    brought = [line for line in listed.splitlines() if not line.startswith(("pip=", "setuptools=", "wheel="))]
    return figure("", len(brought), DISTRIBUTIONS, "distributions") if not extra else f"{len(brought)} distributions"


def imported(place: Place) -> str:
    """What each takes beyond `import psycopg`: the lowest of ten, and of up to fifty while one is above the limit."""
    took = dict.fromkeys((_BENEATH, *_OURS), math.inf)
    for turn in range(50):
        for words in took:
            took[words] = min(took[words], float(place.run(place.python, "-c", _IMPORT.format(words))))
        # A busy machine slows psycopg too, so half of its own time is allowed where that is more than IMPORT_MS.
        most = max(IMPORT_MS, round(took[_BENEATH] / 2))
        if turn >= 9 and max(took[words] for words in _OURS) - took[_BENEATH] <= most:
            break
    beyond = [figure(words, took[words] - took[_BENEATH], most, "ms") for words in _OURS]
    return f"beyond psycopg's {took[_BENEATH]:.0f} ms: {'; '.join(beyond)}"


def tour(place: Place) -> str:
    """The first program of the README prints what the README says."""
    found = TOUR.search((ROOT / "README.md").read_text())
    if found is None:
        raise FailedError("The README has no tour with its output.")
    program = place.folder / "outbox.py"
    program.write_text(found[1])
    said = place.run(place.python, program)
    if said != found[2]:
        raise FailedError(f"The tour printed {said!r}, the README says {found[2]!r}.")
    version = place.run(place.python, "-m", "menzil", "--version").strip()
    place.run(place.python, "-m", "menzil", "doctor")
    return f"{len(said.splitlines())} lines as the README has them; {version}; doctor is content"


def parted(place: Place, wheel: Path) -> str:
    """Without its part a command says what to install; the extras bring the parts, which then answer."""
    for part in PARTS:
        said = place.run(place.python, "-c", _DOOR[part.name])
        if f"pip install 'menzil[{_NAMED.get(part.name, part.extra)}]'" not in said:
            raise FailedError(f"Without {part.name} its door says {said!r}.")
    brought = install(place, wheel, "[console,lake]")
    listed = place.run(place.python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check").split()
    version = wheel.name.split("-")[1]
    if missing := [part.name for part in PARTS if f"{part.name}=={version}" not in listed]:
        raise FailedError(f"The extras did not bring {missing}.")
    place.run(place.python, "-m", "menzil", "console", "--new-token", "ada:viewer")
    place.run(place.python, "-c", _WHOLE)
    place.run(place.python, "-m", "pip", "check", "--disable-pip-version-check")
    return brought


def tests_of(sdist: Path, place: Place) -> str:
    """The sdist brings its tests and what they read; they run with this environment and the sdist's own source."""
    with tarfile.open(sdist) as file:
        file.extractall(place.folder, filter="data")
    (source,) = place.folder.glob("menzil-*/")
    place.environ["PYTHONPATH"] = str(source / "src")
    said = place.run(sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/unit", cwd=source)
    return f"{sdist.stat().st_size / 1e6:.2f} MB; {said.strip().splitlines()[-1]}"


def figure(name: str, value: float, most: float, unit: str) -> str:
    """A figure beside its limit, which ends the check when it is exceeded."""
    said = f"{name} {value:.3g} {unit} (at most {most:g})".strip()
    if value > most:
        raise FailedError(f"Above the limit: {said}.")
    return said


def main() -> int:
    """All steps, in this order."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="menzil-release-") as folder:
        Path(folder).chmod(0o711)  # as root, the embedded server runs as another account and passes through here
        place = Place(Path(folder))
        (place.folder / "dist").mkdir()
        wheel, sdist = build(place.folder / "dist", smallest=True)
        steps: dict[str, Callable[[], str]] = {
            "wheel": lambda: look_into(wheel),
            "install, no extra": lambda: install(place, wheel),
            "import": lambda: imported(place),
            "install [embedded]": lambda: install(place, wheel, "[embedded]"),
            "tour": lambda: tour(place),
            "[console,lake]": lambda: parted(place, wheel),
            "sdist": lambda: tests_of(sdist, place),
        }
        for name, step in steps.items():
            try:
                said, failed = step(), False
            except (FailedError, subprocess.SubprocessError) as error:
                said, failed = f"failed\n{error}", True
            print(f"{time.monotonic() - began:6.1f} s  {name:<18}  {said}", flush=True)
            if failed:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
