"""How a supervisor runs its server: which binaries, as whom, with which environment.

Made by the first user, kept in the home as JSON, so that a new supervisor runs the server the same way.
Standard library alone, like everything the supervisor imports.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from menzil.embedded.home import Home, read_json, write

# The server inherits these and nothing else: no PG* or LC_* that would change what it does, and no secrets of ours
# that a superuser could read from inside.
INHERITED = ("HOME", "LOGNAME", "PATH", "TMPDIR", "USER", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class Plan(NamedTuple):
    """What the supervisor needs to know. uid and gid are None where the server runs as ourselves."""

    bin: str
    version: str
    uid: int | None
    gid: int | None
    durable: bool

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def tool(self, name: str) -> str:
        return str(Path(self.bin) / name)

    def process(self) -> dict[str, Any]:
        """Arguments for subprocess: no terminal, no directory held, no rights beyond those of the server."""
        account: dict[str, Any] = {}
        if self.uid is not None:
            account = {"user": self.uid, "group": self.gid, "extra_groups": []}
        return {"env": self._environment(), "cwd": "/", "stdin": subprocess.DEVNULL, "umask": 0o077, **account}

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        if self.uid is not None:
            kept |= {"HOME": "/", "TMPDIR": "/tmp"}  # ours are root's, closed to the server
        return kept | {"LC_ALL": "C", "TZ": "UTC"}

    def save(self, home: Home) -> None:
        write(home.plan, json.dumps(self._asdict()))

    @classmethod
    def load(cls, home: Home) -> Plan | None:
        value = read_json(home.plan)
        return None if value is None or set(value) != set(cls._fields) else cls(**value)
