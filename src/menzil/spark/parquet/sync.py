"""Files that survive a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: str) -> None:
    """Let a file, and its name in the directory, survive a power cut."""
    for each in (path, str(Path(path).parent)):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
