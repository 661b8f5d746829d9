"""File locks: the kernel counts the users of a server, and forgets a killed one by itself.

Standard library alone, like everything the supervisor imports.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


def open_lock(path: Path) -> int:
    """Open a lock file, making it if need be; a symbolic link in its place is refused."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def try_exclusive(descriptor: int) -> bool:
    """Take the lock for ourselves alone; False when another process has it."""
    return _try(descriptor, fcntl.LOCK_EX)


def try_shared(descriptor: int) -> bool:
    """Take the lock beside others who share it; False when a process has it alone."""
    return _try(descriptor, fcntl.LOCK_SH)


def release(descriptor: int) -> None:
    """Give the lock back but keep the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_locked(path: Path) -> bool:
    """Whether a process holds this lock right now."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return not try_exclusive(descriptor)
        finally:
            os.close(descriptor)
    return False


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
