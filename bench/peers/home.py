"""Where peers are installed: a directory that is gone at the end. What cannot be installed is left out, and said so."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

HERE = Path(__file__).parent
PATIENCE = 300  # seconds for one installation


class UnavailableError(Exception):
    """A peer cannot be had here; the message is why."""


class Home:
    """Installs at the first question and remembers what went wrong."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="mz-peers-", ignore_cleanup_errors=True)
        self._made: dict[str, Path | UnavailableError] = {}

    def python(self) -> Path:
        """A Python that has the packages of requirements.txt."""
        return self._once("venv", _make_python)

    def node(self) -> Path:
        """A script of ours beside a node_modules with graphile-worker."""
        return self._once("node", _make_node)

    def _once(self, name: str, make: Callable[[Path], Path]) -> Path:
        if name not in self._made:
            try:
                self._made[name] = make(Path(self._place.name) / name)
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


def _make_python(place: Path) -> Path:
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", HERE / "requirements.txt")
    return python


def _make_node(place: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise UnavailableError("node and npm are not installed")
    place.mkdir()
    (place / "package.json").write_text('{"private": true}')
    _run(npm, "install", "--no-audit", "--no-fund", "--silent", "graphile-worker", cwd=place)
    return Path(shutil.copy(HERE / "graphile.mjs", place))


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise UnavailableError(done.stderr or f"{words[0]} fails with {done.returncode}")
