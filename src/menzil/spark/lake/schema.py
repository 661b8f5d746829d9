"""The columns of a lake. Columns are only ever added: none is renamed, and none changes its type."""

from __future__ import annotations

from collections.abc import Iterable

from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.source.relations import RELATIONS

#: Of the layout and the manifests; a reader refuses a later one.
FORMAT = 1

#: What a lake holds: ended messages, and the event log.
MESSAGES, EVENTS = "messages", "events"

ATTEMPT = (
    "attempt: bigint, outcome: string, leased_at: timestamp, ended_at: timestamp, worker: string, error: string, "
    "status_code: int, duration_ms: double"
)

#: What is in the files of messages, by name.
COLUMNS: dict[str, str] = {column.name: column.spark_type for column in RELATIONS["archive"].columns} | {
    "attempts": f"array<struct<{ATTEMPT}>>"
}
TABLES = {
    MESSAGES: COLUMNS,
    EVENTS: {column.name: column.spark_type for column in RELATIONS["event_log"].columns},
}

#: What the directories say.
PARTITIONS = {
    MESSAGES: {"year": "int", "month": "int", "endpoint": "string"},
    EVENTS: {"year": "int", "month": "int"},
}


def union(schemas: Iterable[dict[str, str]], table: str = MESSAGES) -> dict[str, str]:
    """Our columns, then those that a later version or a promotion added."""
    columns = dict(TABLES[table])
    for schema in schemas:
        for name, kind in schema.items():
            if columns.setdefault(name, kind) != kind:
                raise LakeDamagedError(f"Column {name} is {columns[name]} here and {kind} there.")
    return columns


def ddl(columns: dict[str, str], table: str = MESSAGES) -> str:
    """As Spark reads it, directories included."""
    return ", ".join(f"`{name}` {kind}" for name, kind in {**columns, **PARTITIONS[table]}.items())
