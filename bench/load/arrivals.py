"""What handlers saw: one file that all workers append to, sixteen bytes a message.

Its length says how many messages were handled without asking anybody.
"""

from __future__ import annotations

import os
import struct
import time
from array import array
from pathlib import Path

VARIABLE = "BENCH_ARRIVALS"
ENTRY = struct.Struct("=qq")  # when it was sent, or its mark, and when it arrived: nanoseconds of the monotonic clock


class Arrivals:
    """The file, from the side of the one who reads it."""

    def __init__(self, place: Path) -> None:
        self.path = place
        self.path.touch()

    def environment(self) -> dict[str, str]:
        return {VARIABLE: str(self.path)}

    def count(self) -> int:
        return self.path.stat().st_size // ENTRY.size

    def read(self, first: int = 0) -> list[tuple[int, int]]:
        """All entries from number `first` on, in the order of their arrival."""
        with self.path.open("rb") as file:
            file.seek(first * ENTRY.size)
            numbers = array("q", file.read())
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def wait(self, count: int, patience: float = 60.0) -> None:
        """Until so many were handled; an error when none came for as long as the patience lasts."""
        seen, since = -1, time.monotonic()
        while (now := self.count()) < count:
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                raise RuntimeError(f"{now} of {count} messages were handled, and no more.")
            time.sleep(0.05)


class Log:
    """The same, from the side of a handler; opened at the first message, in the process that handles it."""

    _file: int | None = None

    def add(self, mark: int) -> None:
        if self._file is None:
            self._file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND)
        os.write(self._file, ENTRY.pack(mark, time.monotonic_ns()))
