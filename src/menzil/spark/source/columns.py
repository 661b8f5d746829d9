"""Which columns of a frame are what of a message. Pure; decided on the driver, before any task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from menzil.model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: Columns of a staging table that a frame may bring, and the kinds of value each may have.
WORDS: dict[str, tuple[str, ...]] = {
    "endpoint": ("text",),
    "payload": ("text", "nested", "bytes"),
    "content": ("bytes",),
    "priority": ("number",),
    "ordering_key": ("text",),
    "idempotency_key": ("text",),
    "correlation_id": ("text",),
    "scheduled_at": ("time",),
    "expires_at": ("time",),
    "headers": ("text", "nested"),
    "metadata": ("text", "nested"),
    "replay_of": ("number",),
}

_KINDS = {
    "string": "text", "char": "text", "varchar": "text", "binary": "bytes", "timestamp": "time", "tinyint": "number",
    "smallint": "number", "int": "number", "bigint": "number", "struct": "nested", "map": "nested", "array": "nested",
    "void": "nothing",
}  # fmt: skip

_NEEDED = {"text": "a string", "nested": "a struct, map or array", "bytes": "binary", "number": "a whole number",
           "time": "a timestamp with time zone"}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A column of the frame: which one, what it is for, and whether it is turned into JSON."""

    index: int
    word: str
    nested: bool


@dataclass(frozen=True)
class Shape:
    """What a task needs to know about the frame."""

    sources: tuple[Source, ...]
    endpoint: str | None  # of all rows, when no column names it


def shape_of(schema: StructType, options: Mapping[str, str]) -> Shape:
    """Check the columns of a frame, by name and type, and say what each is. Names have no case."""
    endpoint = options.get("endpoint") or options.get("channel")
    sources: dict[str, Source] = {}
    for index, field in enumerate(schema.fields):
        word, kind = _meant(field.name, field.dataType.simpleString())
        if word in sources:
            raise UsageError(f"Two columns say what the {word} is.", hint="drop one of them before writing")
        if kind != "nothing":
            sources[word] = Source(index, word, nested=kind == "nested")
    if endpoint is None and "endpoint" not in sources:
        raise UsageError("Which endpoint?", hint='give .option("endpoint", name), or have a column called endpoint')
    if endpoint is not None and "endpoint" in sources:
        raise UsageError("The endpoint is given twice, as an option and as a column.", hint="leave one of them out")
    if "payload" not in sources and "content" not in sources:
        raise UsageError(
            "There is no column for the payload.", hint="name one payload (JSON text or a struct) or content (binary)"
        )
    return Shape(tuple(sources.values()), endpoint)


def _meant(name: str, type_name: str) -> tuple[str, str]:
    word = {"channel": "endpoint"}.get(name.lower(), name.lower())
    if word not in WORDS:
        raise UsageError(
            f"A message has no {name!r}, so this column cannot be sent.",
            hint=f"put it into the payload, or drop it; columns may be {', '.join(WORDS)}",
        )
    kind = _KINDS.get(type_name.split("<")[0].split("(")[0], "")
    if kind != "nothing" and kind not in WORDS[word]:
        needed = " or ".join(_NEEDED[each] for each in WORDS[word])
        raise UsageError(f"The column {name} is {type_name}, it must be {needed}.", hint="cast it before writing")
    if kind == "bytes":
        word = "content"
    return word, kind
