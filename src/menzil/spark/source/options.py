"""What was asked of the source. The dsn is in no repr, so in no message either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from menzil.model.errors import UsageError
from menzil.ops.dsn import Dsn
from menzil.spark.database import for_source

#: The options of each use of the source. Spark hands some of its own on to a stream.
READ = ("dsn", "table", "numPartitions", "snapshot", "endedFrom", "batchBytes")
READ_STREAM = (
    "dsn", "table", "startingOffsets", "maxRowsPerTrigger", "rowsPerTask", "failOnDataLoss", "consumer", "batchBytes",
)  # fmt: skip
WRITE = ("dsn", "endpoint", "channel", "sendId", "what")
WRITE_STREAM = (*WRITE, "checkpointLocation", "queryName")


def must_be_known(options: Mapping[str, str], known: Sequence[str]) -> None:
    """Refuse an option that means nothing here: `send_id` for `sendId` would cost exactly-once without a word."""
    names = {name.lower(): name for name in known}
    for given in options:
        if given.lower() in names:
            continue
        if given.lower() == "path":
            raise UsageError('format("menzil") takes no path.', hint="call load(), save() or start() without one")
        near = get_close_matches(given.lower().replace("_", "").replace("-", ""), names, 1)
        hint = f"did you mean {names[near[0]]}? " if near else ""
        raise UsageError(f"There is no option {given!r} here.", hint=f"{hint}the options are {', '.join(known)}")


def dsn_of(options: Mapping[str, str]) -> Dsn:
    """The option `dsn`, or the next of the five answers. Runs on the driver; tasks get the answer with the reader."""
    return for_source(options.get("dsn"))


def send_id_of(options: Mapping[str, str]) -> str | None:
    """The option `sendId`; None when it was not given."""
    given = options.get("sendId", options.get("sendid"))
    if given is not None:
        demand_id(given, "sendId")
    return given


def demand_id(given: str, name: str) -> None:
    """Refuse an id without a letter, as a variable that is not set makes it: it would tell no run from another."""
    if not given.strip():
        raise UsageError(f"The {name} is empty.", hint="perhaps a variable is not set")


def number(options: Mapping[str, str], name: str, least: int = 1) -> int | None:
    """A whole number, or None when it was not given. Options have no case."""
    given = options.get(name) or options.get(name.lower())
    if given is None:
        return None
    try:
        value = int(given)
    except ValueError:
        value = least - 1
    if value < least:
        raise UsageError(f"The option {name} is {given!r}, it must be a whole number of {least} or more.")
    return value


def truth(options: Mapping[str, str], name: str, default: bool) -> bool:
    """true or false."""
    given = options.get(name) or options.get(name.lower())
    if given is None:
        return default
    if given.lower() not in ("true", "false"):
        raise UsageError(f"The option {name} is {given!r}, it must be true or false.")
    return given.lower() == "true"


@dataclass(frozen=True)
class ReadOptions:
    """Of a batch read."""

    dsn: str = field(repr=False)
    table: str
    partitions: int | None
    snapshot: str | None
    ended_from: int | None
    batch_bytes: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read and check."""
        must_be_known(options, READ)
        table, ended_from = options.get("table") or "archive", number(options, "endedFrom", least=0)
        if ended_from is not None and table.lower().removeprefix("menzil.") != "archive":
            raise UsageError(f"{table} has no ends.", hint="endedFrom is for the archive")
        return cls(
            dsn=dsn_of(options),
            table=table,
            partitions=number(options, "numPartitions"),
            snapshot=options.get("snapshot"),
            ended_from=ended_from,
            batch_bytes=number(options, "batchBytes") or 4 << 20,
        )


@dataclass(frozen=True)
class FeedOptions:
    """Of a stream read."""

    dsn: str = field(repr=False)
    table: str
    starting: str
    most: int | None
    rows_per_task: int
    fail_on_loss: bool
    consumer: str | None
    batch_bytes: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> FeedOptions:
        """Read and check."""
        must_be_known(options, READ_STREAM)
        starting = options.get("startingOffsets") or options.get("startingoffsets") or "earliest"
        return cls(
            dsn=dsn_of(options),
            table=options.get("table") or "archive",
            starting=starting if starting.lstrip().startswith("{") else starting.lower(),
            most=number(options, "maxRowsPerTrigger"),
            rows_per_task=number(options, "rowsPerTask") or 100_000,
            fail_on_loss=truth(options, "failOnDataLoss", True),
            consumer=options.get("consumer"),
            batch_bytes=number(options, "batchBytes") or 4 << 20,
        )
