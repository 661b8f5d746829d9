# Written by tools/twins.py from ../aio/upkeep.py. Change that file, then run: python tools/twins.py
"""Settings and housekeeping."""

from __future__ import annotations

from menzil.client.base import Client
from menzil.ops import upkeep as ops
from menzil.ops.borrow import Borrowed


class Upkeep(Client):
    """Settings, and the jobs that otherwise a worker does."""

    def setting(self, name: str, *, conn: Borrowed | None = None) -> str:
        """The value of a setting, as text."""
        return self._run(ops.setting(name), conn)

    def set_setting(self, name: str, value: str | float | bool, *, conn: Borrowed | None = None) -> None:
        """Change a setting for all sessions, at once."""
        self._run(ops.set_setting(name, value), conn)

    def maintain(self, *, conn: Borrowed | None = None) -> None:
        """Do once what the queue needs to go on: recover, expire, promote, forget old keys."""
        self._run(ops.maintain(), conn)

    def mark_expired(self, limit: int = 1000, *, conn: Borrowed | None = None) -> int:
        """End messages whose expiry has passed; return how many."""
        return self._run(ops.mark_expired(limit), conn)

    def recover_stale(self, limit: int = 1000, *, conn: Borrowed | None = None) -> int:
        """Take back messages whose lease ran out; return how many."""
        return self._run(ops.recover_stale(limit), conn)

    def maintain_archive_partitions(self, months_ahead: int = 3, *, conn: Borrowed | None = None) -> int:
        """Create the partitions of the coming months; return how many were missing."""
        return self._run(ops.maintain_archive_partitions(months_ahead), conn)
