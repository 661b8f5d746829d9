"""Files that commands write."""

from __future__ import annotations

import os
from pathlib import Path

from menzil.model.errors import UsageError


def must_be_writable(out: Path, option: str = "--out") -> None:
    """Refuse a file that could not be written at the end of all the work, and "-", which no user means as a file."""
    if str(out) == "-":
        raise UsageError(f"{option} - would make a file called -.", hint=f"write {option} /dev/stdout, or name a file")
    if not out.parent.is_dir():
        raise UsageError(f"There is no directory {out.parent}.", hint=f"make it, or choose another place with {option}")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise UsageError(f"{out} may not be written.", hint=f"choose another place with {option}")
