"""How a worker works."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from menzil.model.errors import UsageError
from menzil.model.secrets import secret_keys
from menzil.model.wire import Loads, json_loads
from menzil.telemetry.tracing import Tracing, read_tracing
from menzil.worker.handler import LONGEST

if TYPE_CHECKING:
    from menzil.telemetry.serving import Listen

#: Seconds of a handler's lease.
LEASE = 30.0
#: Deliveries at once for a handler with a transaction: each needs a connection.
CONNECTIONS = 10
#: Threads for handlers that are plain functions: each may open a database connection of its own, as Django does.
THREADS = 10
#: Bytes of the bodies of messages that a worker holds.
BYTES = 64 * 1024 * 1024
#: Messages of one lease.
BATCH = 500


def new_name() -> str:
    """Return a name that no other worker has."""
    return f"{socket.gethostname()}:{os.getpid()}:{os.urandom(3).hex()}"


@dataclass(slots=True)
class Options:
    """What may be said to Worker(…) and to `menzil worker`."""

    name: str | None = None
    concurrency: int = 100
    threads: int = THREADS
    lease: float | None = None
    batch: int | None = None
    max_bytes: int = BYTES
    endpoints: bool = True
    channels: list[str] | None = None
    listen: bool = True
    prepare: bool = True
    janitors: bool = True
    poll: tuple[float, float] | None = None
    grace: float = 10.0
    secret_key: str | None = field(default=None, repr=False)
    loads: Loads = json_loads
    tracing: Tracing | bool = True
    metrics: Listen | None = None

    def check(self) -> None:
        """Refuse what makes no sense."""
        for name in ("concurrency", "threads", "max_bytes"):
            if type(value := getattr(self, name)) is not int or value < 1:
                raise UsageError(f"{name} is a whole number, 1 or more, not {value!r}.")
        if isinstance(self.channels, str):  # its letters would be taken for names
            raise UsageError("channels is a list of names.", hint=f"write channels=[{self.channels!r}]")
        if self.lease is not None and not 1 <= self.lease <= LONGEST:
            raise UsageError(
                "A lease is 1 second to 7 days.", hint="heartbeats keep it for as long as a delivery takes"
            )
        if self.batch is not None and not 1 <= self.batch <= 10_000:
            raise UsageError("A batch is 1 to 10000 messages.")
        if not self.grace >= 0:
            raise UsageError("The grace period is zero or more seconds.")
        if self.poll is not None and not 0 < self.poll[0] <= self.poll[1]:
            raise UsageError("poll is two pauses in seconds, the shortest and the longest.")
        if self.name is not None and not 1 <= len(self.name) <= 255:
            raise UsageError("The name of a worker has 1 to 255 characters.")
        secret_keys(self.secret_key)
        read_tracing(self.tracing)
