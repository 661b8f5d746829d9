"""What can be read, with the Spark type of each column and the SQL that gives exactly that type.

Arrow batches go to Spark as they come from PostgreSQL, so the types must agree to the letter: jsonb, uuid and xid8
travel as text, numeric as double.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from menzil.model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SPARK = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "boolean": "boolean",
    "text": "string",
    "bytea": "binary",
    "timestamptz": "timestamp",
    "jsonb": "string",
    "uuid": "string",
    "xid8": "string",
    "numeric": "double",
    "double": "double",
    "interval": "string",
}
_TIMESTAMP = re.compile(r"\btimestamp\b")
_CAST = {"jsonb": "text", "uuid": "text", "xid8": "text", "interval": "text"}
# What no double can hold is an error in PostgreSQL; one odd number must not keep a month from being read.
_DOUBLE = (
    "case when abs({0}) between 2.4704e-324 and 1.7976931348623157e308 then {0} when abs({0}) > 1 "
    "then sign({0}) * 1.7976931348623157e308 when {0} is not null then 0 end"
)


def in_ddl(kind: str) -> str:
    """A type as Spark reads it. A session may take `timestamp` for a time without a zone (spark.sql.timestampType), and
    would then compare it with moments by a zone of its own."""
    return _TIMESTAMP.sub("timestamp_ltz", kind)


@dataclass(frozen=True)
class Column:
    """A column of a relation, by its PostgreSQL type."""

    name: str
    type: str
    sql: str | None = None  # where it is not a column of the table

    @property
    def spark_type(self) -> str:
        """As Spark names it."""
        return _SPARK[self.type]

    @property
    def expression(self) -> str:
        """The SQL of its value, with the type that Spark expects."""
        value = f"({self.sql})" if self.sql else f'"{self.name}"'
        if self.type == "numeric":
            return f"({_DOUBLE.format(value)})::double precision"
        cast = _CAST.get(self.type)
        return f"{value}::{cast}" if cast else value


@dataclass(frozen=True)
class Relation:
    """A table or view of the schema menzil; `key` is a column by which a range is read quickly, if there is one.

    `more` are values that PostgreSQL works out for those who ask for them by name.
    """

    name: str
    columns: tuple[Column, ...]
    key: str | None = None
    more: tuple[Column, ...] = ()

    @property
    def ddl(self) -> str:
        """The schema as Spark reads it."""
        return ", ".join(f"{column.name} {in_ddl(column.spark_type)}" for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of this name; Spark compares names without case, and so does this."""
        for column in (*self.columns, *self.more):
            if column.name == name.lower():
                return column
        raise UsageError(
            f"{self.name} has no column {name}.",
            hint="it has " + ", ".join(column.name for column in self.columns),
        )

    def chosen(self, names: Sequence[str] | None) -> str:
        """The schema of these columns only: the projection, as Spark reads it."""
        columns = self.columns if names is None else [self.column(name) for name in names]
        return ", ".join(f"{column.name} {in_ddl(column.spark_type)}" for column in columns)

    def asked(self, schema: StructType) -> list[tuple[Column, str]]:
        """The columns of this schema, each with its name there. Refuses a type that the values do not have."""
        columns = []
        for field in schema.fields:
            column = self.column(field.name)
            if field.dataType.simpleString() != column.spark_type:
                raise UsageError(
                    f"{self.name}.{column.name} is {column.spark_type}, not {field.dataType.simpleString()}.",
                    hint="read it as it is, and cast it in Spark",
                )
            columns.append((column, field.name))
        return columns

    def projection(self, schema: StructType) -> str:
        """The select list for this schema."""
        return ", ".join(f'{column.expression} as "{name}"' for column, name in self.asked(schema))


def relation(name: str) -> Relation:
    """The relation of this name."""
    found = RELATIONS.get(name.lower().removeprefix("menzil."))
    if found is None:
        raise UsageError(f"There is no relation {name}.", hint=f"choose one of {', '.join(RELATIONS)}")
    return found


def _relation(name: str, columns: str, key: str | None = None, more: tuple[Column, ...] = ()) -> Relation:
    pairs = (column.split() for column in columns.replace("\n", " ").split(","))
    return Relation(name, tuple(Column(*pair) for pair in pairs), key, more)


# What the view attempts says of a try that succeeded, from the row of its message: cheaper here than by Spark, which
# would parse the response for each.
_TOOK = "(response ->> 'duration_ms')::numeric"
_SUCCESS = (
    Column(
        "success_status",
        "integer",
        "case when response ->> 'status' ~ '^[0-9]{1,9}$' then (response ->> 'status')::integer end",
    ),
    Column(
        "success_ms",
        "double",
        # A number of so few digits is one that a double can hold, and is read once.
        "case when jsonb_typeof(response -> 'duration_ms') = 'number' "
        "then case when length(response ->> 'duration_ms') < 300 then (response ->> 'duration_ms')::double precision "
        f"else ({_DOUBLE.format(_TOOK)})::double precision end "
        "else round(extract(epoch from ended_at - leased_at) * 1000, 3)::double precision end",
    ),
)

RELATIONS = {
    relation.name: relation
    for relation in (
        _relation(
            "archive",
            """id bigint, status text, channel text, endpoint_id integer, priority smallint, num_attempts bigint,
            retry_count integer, created_at timestamptz, scheduled_at timestamptz, expires_at timestamptz,
            first_leased_at timestamptz, leased_at timestamptz, ended_at timestamptz, ended_xid xid8, worker text,
            payload jsonb, content bytea, payload_hash text, ordering_key text, idempotency_key text,
            correlation_id uuid, headers jsonb, metadata jsonb, last_error text, state bytea, redrive_of bigint,
            replay_of bigint, response jsonb""",
            more=_SUCCESS,
        ),
        _relation(
            "queue",
            """id bigint, status text, channel text, endpoint_id integer, endpoint text, payload jsonb, content bytea,
            payload_hash text, priority integer, ordering_key text, idempotency_key text, correlation_id uuid,
            headers jsonb, metadata jsonb, scheduled_at timestamptz, next_retry_at timestamptz, expires_at timestamptz,
            created_at timestamptz, processing_started_at timestamptz, unlock_at timestamptz, num_attempts bigint,
            retry_count integer, last_error text, state bytea, worker text, redrive_of bigint, replay_of bigint""",
            key="id",
        ),
        _relation(
            "dlq",
            """id bigint, original_message_id bigint, endpoint_id integer, endpoint_name text, protocol text,
            status text, failed_at timestamptz, redriven_at timestamptz, redriven_id bigint, payload jsonb,
            content bytea, payload_hash text, priority smallint, ordering_key text, idempotency_key text,
            correlation_id uuid, headers jsonb, metadata jsonb, scheduled_at timestamptz, expires_at timestamptz,
            created_at timestamptz, num_attempts bigint, retry_count integer, last_error text, state bytea,
            redrive_of bigint, replay_of bigint, blocks_key boolean, attempts jsonb, cause text,
            cause_hash text""",
            key="id",
        ),
        _relation(
            "attempts",
            """message_id bigint, attempt bigint, channel text, outcome text, leased_at timestamptz,
            ended_at timestamptz, worker text, error text, response jsonb, status_code integer, duration_ms numeric""",
            key="message_id",
        ),
        _relation(
            "event_log",
            """id bigint, event_type text, entity_type text, entity_id text, old_value jsonb, new_value jsonb,
            metadata jsonb, created_at timestamptz, xid xid8, actor text, via text""",
            key="id",
        ),
        _relation(
            "endpoints",
            """id integer, name text, protocol text, config jsonb, retry_policy jsonb, enabled boolean, paused boolean,
            created_at timestamptz, updated_at timestamptz, circuit_state text, circuit_failure_count integer,
            next_probe_at timestamptz""",
        ),
        _relation(
            "channels",
            """id integer, name text, is_endpoint boolean, enabled boolean, paused boolean, released boolean,
            max_concurrency integer, max_size bigint, release_interval_ms bigint, release_count integer, on_dead text,
            in_flight integer, created_at timestamptz, updated_at timestamptz""",
        ),
        _relation("event_types", "name text, description text, schema jsonb, created_at timestamptz"),
        _relation(
            "subscriptions", "id bigint, event_type text, endpoint_name text, filter jsonb, created_at timestamptz"
        ),
        _relation(
            "schedules",
            """id bigint, name text, cron text, time_zone text, endpoint_name text, payload jsonb, priority integer,
            ordering_key text, expires_after interval, headers jsonb, metadata jsonb, paused boolean,
            next_at timestamptz, last_slot_at timestamptz, last_message_id bigint, last_error text,
            created_at timestamptz""",
        ),
    )
}
