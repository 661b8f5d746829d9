"""The columns of a lake, in the words of Spark and of Iceberg. Columns are only ever added: none changes its type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.source.relations import RELATIONS, in_ddl

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.sorting import SortOrder

#: What a lake holds: ended messages, and the event log.
MESSAGES, EVENTS = "messages", "events"

ATTEMPT = {
    "attempt": "bigint",
    "outcome": "string",
    "leased_at": "timestamp",
    "ended_at": "timestamp",
    "worker": "string",
    "error": "string",
    "status_code": "int",
    "duration_ms": "double",
}
_ATTEMPTS = f"array<struct<{', '.join(f'{name}: {kind}' for name, kind in ATTEMPT.items())}>>"


def _columns(relation: str) -> dict[str, str]:
    """Iceberg knows no smallint."""
    return {column.name: column.spark_type.replace("smallint", "int") for column in RELATIONS[relation].columns}


#: What is in the files of messages, by name.
COLUMNS: dict[str, str] = _columns("archive") | {"attempts": _ATTEMPTS}
TABLES = {MESSAGES: COLUMNS, EVENTS: _columns("event_log")}

#: Channels of a database above which files are parted by a hash of the channel: a file per channel would be too small.
MANY, BUCKETS = 1000, 64

#: Columns whose bounds are kept for every file. Those of bodies would only make the metadata fat.
BOUNDED = {
    MESSAGES: ("id", "created_at", "ended_at", "channel", "status"),
    EVENTS: ("id", "created_at", "event_type", "entity_id"),
}


def properties(table: str) -> dict[str, str]:
    """How a table is to be treated, by menzil and by others."""
    return {
        "format-version": "2",
        "write.parquet.compression-codec": "zstd",
        "write.metadata.metrics.default": "none",
        **{f"write.metadata.metrics.column.{name}": "full" for name in BOUNDED[table]},
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "20",
        # An append that lost a race must be planned again, not repeated: it may hold rows that the winner exported.
        "commit.retry.num-retries": "0",
    }


def iceberg(table: str) -> Schema:
    """The table's columns. The catalog gives them their ids."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import ListType, NestedField, StructType

    fields, ids = [], iter(range(1, 1000))
    for name, kind in TABLES[table].items():
        if name == "attempts":
            inner = [NestedField(next(ids), key, iceberg_type(of), required=False) for key, of in ATTEMPT.items()]
            made: Any = ListType(next(ids), StructType(*inner), element_required=False)
        else:
            made = iceberg_type(kind)
        fields.append(NestedField(next(ids), name, made, required=False))
    return Schema(*fields)


def iceberg_type(kind: str) -> Any:
    """A type of Spark in Iceberg's words."""
    from pyiceberg import types

    return {
        "bigint": types.LongType(),
        "int": types.IntegerType(),
        "string": types.StringType(),
        "timestamp": types.TimestamptzType(),
        "double": types.DoubleType(),
        "boolean": types.BooleanType(),
        "binary": types.BinaryType(),
    }[kind]


def spark_columns(schema: Schema) -> dict[str, str]:
    """Name and Spark type of every column that a table has."""
    found = {}
    for field in schema.fields:
        kind = str(field.field_type)
        found[field.name] = _SPARK.get(kind) or (_ATTEMPTS if field.name == "attempts" else "")
        if not found[field.name]:
            raise LakeDamagedError(f"Column {field.name} is {kind}, which menzil never writes.")
    return found


_SPARK = {
    "long": "bigint",
    "int": "int",
    "string": "string",
    "timestamptz": "timestamp",
    "double": "double",
    "boolean": "boolean",
    "binary": "binary",
}


def spec(table: str, schema: Schema) -> PartitionSpec:
    """By month and channel; the event log by month."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform, MonthTransform

    def field(name: str) -> int:
        return schema.find_field(name).field_id

    fields = [PartitionField(field("created_at"), 1000, MonthTransform(), "created_month")]
    if table == MESSAGES:
        fields.append(PartitionField(field("channel"), 1001, IdentityTransform(), "channel"))
    return PartitionSpec(*fields)


def order(schema: Schema) -> SortOrder:
    """How rows lie in a file."""
    from pyiceberg.table.sorting import SortField, SortOrder
    from pyiceberg.transforms import IdentityTransform

    names = ("created_at", "id")
    return SortOrder(*[SortField(schema.find_field(name).field_id, transform=IdentityTransform()) for name in names])


def ddl(columns: dict[str, str]) -> str:
    """As Spark reads it."""
    return ", ".join(f"`{name}` {in_ddl(kind)}" for name, kind in columns.items())


def arrow(columns: dict[str, str]) -> Any:
    """As tasks hand rows to Spark."""
    import pyarrow as pa

    kinds = {
        "bigint": pa.int64(),
        "int": pa.int32(),
        "string": pa.string(),
        "timestamp": pa.timestamp("us", "UTC"),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
    }
    kinds[_ATTEMPTS] = pa.list_(pa.field("element", pa.struct([(name, kinds[of]) for name, of in ATTEMPT.items()])))
    return pa.schema([(name, kinds[kind]) for name, kind in columns.items()])


def with_promoted(columns: dict[str, str], promoted: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Columns and those made of payloads, of which none may have another type than before."""
    found = dict(columns)
    for name, kind in promoted:
        if found.setdefault(name, kind) != kind:
            raise LakeDamagedError(f"Column {name} is {found[name]} here and {kind} there.")
    return found
