"""What a source is: where records come from, and the few methods that a bridge needs to take them.

To add one, write a class beside this file and give it a line in `SOURCES` of menzil.bridge.sources; its config needs
rules in menzil._bridge_rules and its name in menzil._bridge_protocols.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from typing import Protocol as Interface

from menzil.deliver.guard import Guard
from menzil.ops.bridges import Spec


class SourceError(Exception):
    """The source cannot be read now. Its text shows no secret. The bridge waits, and opens the source anew."""


@dataclass(slots=True)
class Record:
    """One record as the source has it."""

    body: bytes | None = field(repr=False)  # None: it has none, such as a tombstone of Kafka
    position: str | None = None  # for people: it is kept with the message
    key: bytes | str | None = None  # becomes the ordering key
    headers: Sequence[tuple[str, bytes | str | None]] = ()  # as they came; mapping.py says which of them are kept
    id: str | None = None  # by which the sender knows it; else the header menzil-id
    type: str | None = None  # else the header menzil-type
    content_type: str | None = None  # else the header content-type
    correlation_id: str | None = None  # else the header correlation-id
    subject: str | None = None  # or topic or routing key, where the records of one partition differ in it
    fault: str | None = None  # why it can never be a message, where the source finds that out
    token: Any = None  # what acknowledge() needs


@dataclass(slots=True)
class Batch:
    """Records of one partition, in their order. It becomes one transaction."""

    partition: str
    begin: str | None  # the position before the first record; None where the source has no positions
    end: str | None  # the position after the last one
    records: list[Record]
    lost: int = 0  # records that the source had removed between `begin` and the first record


class Positions(Interface):
    """Asks for the stored position of a partition; for a new one `start` is stored, unless it is None."""

    async def __call__(self, partition: str, start: str | None = None) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every source of one process is told."""

    guard: Guard
    worker: str


class Source(ABC):
    """Where the records of one bridge come from. Belongs to one event loop, which it must not block.

    A source with positions is read without acknowledgements: after a crash the bridge opens it at the stored position.
    A source without positions gives None for them, puts an id into each record, and forgets a record when it is
    acknowledged, after the commit.
    """

    has_positions = True

    def __init__(self, spec: Spec, surroundings: Surroundings) -> None:
        self.spec = spec
        self.config: Mapping[str, Any] = spec.config
        self.surroundings = surroundings

    @abstractmethod
    async def open(self, positions: Positions) -> None:
        """Connect, and go to the stored position of every partition. Raises SourceError.

        A source whose partitions come and go asks for the position of each when it gets it, also later.
        """

    @abstractmethod
    async def read(self, limit: int, seconds: float) -> Batch | None:
        """Return at most `limit` records of one partition, or None when none came in this time.

        A batch without records moves the position over what no reader sees. The next read goes on behind the batch,
        whether or not it was taken. Raises SourceError. May be cancelled: a later read returns what it had read.
        """

    @abstractmethod
    async def seek(self, partition: str, position: str | None) -> None:
        """Read on from here: this batch was not taken, or another process moved the position."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections. Called once, also when open() failed."""

    async def acknowledge(self, batch: Batch) -> None:  # noqa: B027 # nothing to do where there are positions
        """The records of this batch are committed, and must not come again."""

    async def lags(self) -> dict[str, int]:
        """Count the records that wait behind what was read, by partition. Raises SourceError."""
        return {}

    async def ends(self) -> dict[str, str]:
        """Where the partitions end at this moment, as positions; none where the source has no positions."""
        return {}

    def is_behind(self, position: str | None, end: str) -> bool:
        """Whether a position is before an end that ends() gave."""
        return position is None or int(position) < int(end)
