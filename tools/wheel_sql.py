"""Build hook of the wheel: each folder of SQL code travels as one file.

The repository has one file per function. In a wheel each of these 430 small files costs a header, a line in RECORD and
most of its compression: 220 kB in all. So the wheel carries `sql/functions.sql` and `sql/views.sql` in place of the
folders `sql/functions` and `sql/views`. A line in front of each file names it; `menzil.install.tree` reads both shapes.
An editable install uses the repository as it is.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = ("functions", "views")
#: The line in front of each file; menzil.install.tree knows it too.
MARK = "-- menzil file: "


def joined(sql: Path, folder: str) -> str:
    """All files of a folder as one text, in the order in which they are installed."""
    parts = []
    for path in sorted((sql / folder).rglob("*.sql")):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(sql).as_posix()
        if not text.endswith("\n") or any(line.startswith(MARK) for line in text.splitlines()):
            raise ValueError(f"{name} must end with a line end, and no line of it may begin with {MARK!r}.")
        parts.append(f"{MARK}{name}\n{text}")
    if not parts:
        raise ValueError(f"There is no .sql file in {sql / folder}.")
    return "".join(parts)


class CustomBuildHook(BuildHookInterface[Any]):
    """Hatchling finds it by this name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.made: Path | None = None
        if version == "editable":
            return
        self.made = Path(tempfile.mkdtemp(prefix="menzil-sql-"))
        for folder in FOLDERS:
            file = self.made / f"{folder}.sql"
            file.write_text(joined(Path(self.root, "src/menzil/sql"), folder), encoding="utf-8", newline="\n")
            build_data["force_include"][str(file)] = f"menzil/sql/{folder}.sql"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        if self.made is not None:
            shutil.rmtree(self.made, ignore_errors=True)
