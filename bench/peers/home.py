"""Where peers are installed: a directory that is gone at the end. What cannot be installed is left out, and said so."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

HERE = Path(__file__).parent
PATIENCE = 180  # seconds for one installation
SCRIPTS = ("stage.mjs", "graphile.mjs", "pgboss.mjs")


class UnavailableError(Exception):
    """A peer cannot be had here; the message is why."""


class Home:
    """Installs at the first question and remembers what went wrong."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="mz-peers-", ignore_cleanup_errors=True)
        self._made: dict[str, Path | UnavailableError] = {}
        self.versions: dict[str, str] = {}

    def python(self, *packages: str) -> Path:
        """A Python that has these packages; the first is the peer's own."""

        def install(_: Path) -> Path:
            python = self._once("venv", _make_venv)
            _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)
            name = packages[0].split("[")[0]
            asked = f"import importlib.metadata as m; print(m.version({name!r}))"
            self.versions[name] = _run(python, "-c", asked).strip()
            return python

        return self._once(packages[0], install)

    def node(self, package: str, script: str) -> Path:
        """A script of ours beside a node_modules with this package."""

        def install(place: Path) -> Path:
            npm = shutil.which("npm")
            if npm is None or shutil.which("node") is None:
                raise UnavailableError("node and npm are not installed")
            place.mkdir()
            (place / "package.json").write_text('{"private": true}')
            _run(npm, "install", "--no-audit", "--no-fund", "--silent", package, cwd=place)
            described = json.loads((place / "node_modules" / package / "package.json").read_text())
            self.versions[package] = described["version"]
            for name in SCRIPTS:
                shutil.copy(HERE / name, place)
            return place / script

        return self._once(package, install)

    def _once(self, name: str, make: Callable[[Path], Path]) -> Path:
        if name not in self._made:
            try:
                self._made[name] = make(Path(self._place.name) / name.replace("/", "-"))
            except (UnavailableError, OSError, subprocess.SubprocessError) as error:
                self._made[name] = UnavailableError((str(error).strip() or repr(error)).splitlines()[-1][:200])
        made = self._made[name]
        if isinstance(made, UnavailableError):
            raise made
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._place.cleanup()


def _make_venv(place: Path) -> Path:
    venv.create(place, with_pip=True)
    return place / "bin" / "python"


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise UnavailableError(done.stderr or f"{words[0]} fails with {done.returncode}")
    return done.stdout
