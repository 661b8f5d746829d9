"""Whether endpoints take messages: what a job asks before it moves anything. Driver."""

from __future__ import annotations

from collections.abc import Collection

from menzil.model.errors import DisabledError, UnknownNameError
from menzil.ops import looking_pipeline
from menzil.spark.source.door import ask

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


def demand_open(dsn: str, name: str) -> None:
    """Refuse a single endpoint that takes no messages before Spark reads a row."""
    why = closed(dsn, [name]).get(name)
    if why is None:
        return
    if why.startswith("There is no"):
        raise UnknownNameError(why, hint="`menzil channel list` shows those there are")
    raise DisabledError(why, hint="open it again, or send to another one")
