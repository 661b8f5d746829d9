"""Files that make the next start faster. Each may be deleted at any time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path


def cache_dir() -> Path:
    """`menzil` below the user's cache directory; made when missing. A user without one gets a place that is swept."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if not base.is_absolute():  # the specification says to ignore a relative one
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            base = Path(tempfile.gettempdir()) / f"menzil-cache-{os.geteuid()}"
    place = base / "menzil"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        usable = os.access(place, os.W_OK)
    except OSError:
        usable = False
    if not usable:
        place = Path(tempfile.gettempdir()) / f"menzil-cache-{os.geteuid()}"
        place.mkdir(mode=0o700, exist_ok=True)
    there = place.lstat()
    if there.st_uid != os.geteuid() or there.st_mode & 0o022:
        # What lies here is run or mapped as code: never from a directory that others may write to.
        return Path(tempfile.mkdtemp(prefix="menzil-"))
    return place


def write_once(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Put this content there unless it is there already; another process sees all of it or nothing."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(made).chmod(mode)
    Path(made).replace(path)


def digest(*parts: str) -> str:
    """A short name for what these texts stand for."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
