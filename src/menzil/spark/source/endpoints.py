"""Whether endpoints take messages: what a job or a writer asks before it moves anything."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from menzil.model.errors import DisabledError, UnknownNameError
from menzil.ops import looking_pipeline
from menzil.spark.source.door import ask

if TYPE_CHECKING:
    from pyarrow import RecordBatch

#: Names of one question.
CHUNK = 10_000


def closed(dsn: str, names: Collection[str]) -> dict[str, str]:
    """Of these endpoints the ones that take no messages, each with a sentence that says why."""
    wanted = sorted(names)
    found = {
        row["name"]: row
        for start in range(0, len(wanted), CHUNK)
        for row in ask(dsn, looking_pipeline.channels_named(wanted[start : start + CHUNK]))
    }
    return {name: why for name in wanted if (why := _why(name, found.get(name))) is not None}


def _why(name: str, row: dict[str, object] | None) -> str | None:
    if row is None:
        return f"There is no channel or endpoint named {name[:200]!r}."
    if row["released"]:
        return f"Channel {name!r} is released and takes no new messages."
    return None if row["enabled"] else f"Endpoint {name!r} is disabled and refuses messages."


def demand_open(dsn: str, names: Collection[str]) -> None:
    """Refuse endpoints that take no messages before a row is read or staged."""
    shut = closed(dsn, names)
    if not shut:
        return
    why = next(iter(shut.values()))
    more = f" {len(shut) - 1:,} more endpoints of these rows take no messages either." if len(shut) > 1 else ""
    if why.startswith("There is no"):
        raise UnknownNameError(why + more, hint="`menzil channel list` shows those there are")
    raise DisabledError(why + more, hint="open it again, or send to another one")


def known_endpoints(dsn: str, batches: Iterable[RecordBatch], place: int) -> Iterator[RecordBatch]:
    """Task: hand batches on whose endpoints, in the column of this number, all take messages."""
    import pyarrow.compute

    seen: set[str] = set()
    for batch in batches:
        names = {name for name in pyarrow.compute.unique(batch.column(place)).to_pylist() if name is not None} - seen
        if names:
            demand_open(dsn, names)
            seen |= names
        yield batch
