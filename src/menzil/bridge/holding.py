"""How much a connection holds that the database has not taken: above a bound nothing more is read from the socket.

Servers that send by themselves count messages, not bytes: what they may send ahead of acknowledgements has no size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from menzil.bridge.source import Record
from menzil.deliver.broker.session import Session

#: Bytes of records that may wait in this process. A record that is longer is read whole, and alone.
MOST_BYTES = 16 * 1024 * 1024
#: Messages that may wait, however small they are.
MOST = 5_000
_AROUND = 500  # bytes that a record takes besides its body, about


class Holding(Session):
    """A session that stops reading while it is full. Records count until they are acknowledged."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.full = asyncio.Event()  # set while nothing is read
        self._held = self._size = 0

    def hold(self, record: Record) -> None:
        """A record came."""
        self._count(1, len(record.body or b"") + _AROUND)

    def release(self, records: Iterable[Record]) -> None:
        """These are in the database, or are forgotten."""
        sizes = [len(record.body or b"") + _AROUND for record in records]
        self._count(-len(sizes), -sum(sizes))

    def _count(self, records: int, size: int) -> None:
        self._held += records
        self._size += size
        is_full = self._held >= MOST or self._size >= MOST_BYTES
        if is_full == self.full.is_set() or self.transport is None or not self.is_open:
            return
        if is_full:
            self.full.set()
            self.transport.pause_reading()
        else:
            self.full.clear()
            self.transport.resume_reading()
