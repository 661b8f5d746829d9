"""Version 0.1.0, the engine before this one: unpacked from the git history, to be measured beside the new engine."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[1]
COMMIT = "50ca4df"
NAME = "0.1.0"


class NoHistoryError(Exception):
    """The commit cannot be unpacked here; the message says why."""


class Before:
    """The files of 0.1.0, or of another commit, in a directory that is removed at the end.

    They are unpacked when they are first asked for.
    """

    def __init__(self, commit: str = COMMIT) -> None:
        self._commit = commit
        self._place = tempfile.TemporaryDirectory(prefix="mz-before-", ignore_cleanup_errors=True)

    @cached_property
    def tree(self) -> Path:
        """The directory that holds `src` and `bench` of that version."""
        command = ["git", "-C", str(ROOT), "archive", "--format=tar", self._commit, "src", "bench"]
        try:
            packed = subprocess.run(command, capture_output=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            told = getattr(error, "stderr", b"") or str(error).encode()
            name = NAME if self._commit == COMMIT else self._commit
            raise NoHistoryError(f"no {name}: {told.decode(errors='replace').strip().splitlines()[-1]}") from None
        place = Path(self._place.name)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(place, filter="data")
        return place

    @property
    def sql(self) -> Path:
        """What `migrate(root=…)` installs."""
        return self.tree / "src" / "menzil" / "sql"

    @property
    def environment(self) -> dict[str, str]:
        """With these variables, and `tree` as the current directory, Python imports that version."""
        return {"PYTHONPATH": str(self.tree / "src")}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._place.cleanup()
