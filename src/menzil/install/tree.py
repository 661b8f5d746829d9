"""The SQL this package carries, read from disk: migrations in order, then the code that is re-applied whole.

The repository has a folder with a file per function. The wheel has one file in place of the folder, because hundreds of
small files make it larger; a line in front of each part names its file. Both give the same tree.
Checksums are taken over the text with Unix line ends, so a checkout on another system has the same ones.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from menzil.install.errors import InstallError

PACKAGE_SQL = Path(__file__).resolve().parent.parent / "sql"
_MIGRATION = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
#: The line that tools/wheel_sql.py writes in front of each file of a folder.
_PART = re.compile(r"^-- menzil file: (.+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """One SQL file; the path is relative to the tree and always written with slashes."""

    path: str
    text: str

    @cached_property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Migration:
    """One numbered step forward."""

    version: int
    name: str
    source: Source

    @property
    def label(self) -> str:
        return f"{self.version:04}_{self.name}"


@dataclass(frozen=True)
class Tree:
    """All SQL of one release."""

    migrations: tuple[Migration, ...]
    code: tuple[Source, ...]
    roles: Source | None

    @property
    def version(self) -> int:
        return self.migrations[-1].version if self.migrations else 0

    def history(self, version: int) -> str:
        """A checksum of the migrations up to this one: tells whether a database had the same."""
        lines = (f"{one.label} {one.source.checksum}\n" for one in self.migrations if one.version <= version)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @cached_property
    def code_checksum(self) -> str:
        parts = [*self.code, self.roles] if self.roles else self.code
        lines = (f"{source.path} {source.checksum}\n" for source in parts)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def load(root: Path | None = None) -> Tree:
    """Read the tree at `root`, or the package's own."""
    root = PACKAGE_SQL if root is None else root
    if not root.is_dir():
        raise InstallError(f"There is no SQL at {root}.", hint="reinstall menzil: its .sql files are missing")
    code = [source for folder in ("functions", "views") for source in _folder(root, folder)]
    roles = root / "roles.sql"
    return Tree(
        migrations=_migrations(root),
        code=tuple(code),
        roles=_read(root, roles) if roles.exists() else None,
    )


def latest_version(root: Path | None = None) -> int:
    """Return the schema version of a tree without reading its files."""
    return len(_numbered(PACKAGE_SQL if root is None else root))


def _numbered(root: Path) -> list[tuple[str, Path]]:
    found = []
    for expected, path in enumerate(sorted((root / "migrations").glob("*.sql")), start=1):
        match = _MIGRATION.fullmatch(path.name)
        if match is None:
            raise InstallError(f"{path.name} is not a migration's name.", hint="call it 0001_what_it_adds.sql")
        # Numbers without gaps make "everything up to here" one number, which is what the handshake compares.
        if int(match[1]) != expected:
            raise InstallError(f"Migration {expected:04} is missing or double: {path.name} is in its place.")
        found.append((match[2], path))
    return found


def _migrations(root: Path) -> tuple[Migration, ...]:
    return tuple(
        Migration(version, name, _read(root, path)) for version, (name, path) in enumerate(_numbered(root), start=1)
    )


def _folder(root: Path, folder: str) -> list[Source]:
    """The files of a folder, or the parts of the file that a wheel has in its place."""
    files, whole = sorted((root / folder).rglob("*.sql")), root / f"{folder}.sql"
    if not whole.exists():
        return [_read(root, path) for path in files]
    if files:  # remains of another release: either could be the older one
        raise InstallError(f"There is both {whole} and {whole.with_suffix('')}.", hint="remove menzil, install it anew")
    # The text before the first mark, then a name and its text, alternately.
    begin, *parts = _PART.split(whole.read_text(encoding="utf-8"))
    if begin or not parts:
        raise InstallError(f"{whole} does not begin with the name of a file.", hint="reinstall menzil")
    return [Source(name, text) for name, text in zip(parts[::2], parts[1::2], strict=True)]


def _read(root: Path, path: Path) -> Source:
    # read_text() translates all line ends to \n.
    return Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
