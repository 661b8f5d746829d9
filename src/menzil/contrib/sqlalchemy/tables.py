"""The views of the schema menzil as tables of SQLAlchemy Core, for queries and joins.

    select(Order, tables.queue.c.status).join(tables.queue, tables.queue.c.id == Order.message_id)

They have a MetaData of their own, so neither create_all() nor Alembic meets them. Reading them is all they are for.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    Numeric,
    SmallInteger,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

metadata = MetaData(schema="menzil")

_TYPES: dict[str, Any] = {
    "bigint": BigInteger(),
    "bigints": ARRAY(BigInteger()),
    "bool": Boolean(),
    "bytes": LargeBinary(),
    "double": Double(),
    "int": Integer(),
    "interval": Interval(),
    "json": JSONB(),
    "numeric": Numeric(),
    "smallint": SmallInteger(),
    "text": Text(),
    "time": DateTime(timezone=True),
    "uuid": Uuid(),
    "xid": Text(),
}


def _view(name: str, *columns: str) -> Table:
    """Make a table of columns such as "id:bigint"; a column without a type is text."""
    named = [column.partition(":")[::2] for line in columns for column in line.split()]
    return Table(name, metadata, *(Column(column, _TYPES[kind or "text"]) for column, kind in named))


archive = _view(
    "archive",
    "id:bigint status channel endpoint_id:int priority:smallint num_attempts:bigint retry_count:int created_at:time",
    "scheduled_at:time expires_at:time first_leased_at:time leased_at:time ended_at:time ended_xid:xid worker",
    "payload:json content:bytes payload_hash ordering_key idempotency_key correlation_id:uuid headers:json",
    "metadata:json last_error state:bytes redrive_of:bigint replay_of:bigint response:json",
)
attempts = _view(
    "attempts",
    "message_id:bigint attempt:bigint channel outcome leased_at:time ended_at:time worker error response:json",
    "status_code:int duration_ms:numeric",
)
channels = _view(
    "channels",
    "id:int name is_endpoint:bool enabled:bool paused:bool released:bool max_concurrency:int max_size:bigint",
    "release_interval_ms:bigint release_count:int on_dead in_flight:int created_at:time updated_at:time",
)
dlq = _view(
    "dlq",
    "id:bigint original_message_id:bigint endpoint_id:int endpoint_name protocol status failed_at:time",
    "redriven_at:time redriven_id:bigint payload:json content:bytes payload_hash priority:smallint ordering_key",
    "idempotency_key correlation_id:uuid headers:json metadata:json scheduled_at:time expires_at:time",
    "created_at:time num_attempts:bigint retry_count:int last_error state:bytes redrive_of:bigint replay_of:bigint",
    "blocks_key:bool attempts:json cause cause_hash",
)
endpoints = _view(
    "endpoints",
    "id:int name protocol config:json retry_policy:json enabled:bool paused:bool created_at:time updated_at:time",
    "circuit_state circuit_failure_count:int next_probe_at:time",
)
event_log = _view(
    "event_log",
    "id:bigint event_type entity_type entity_id old_value:json new_value:json metadata:json created_at:time xid:xid",
    "actor via",
)
jobs = _view(
    "jobs",
    "name call every:interval next_at:time last_run_at:time last_worker last_count:bigint last_error",
)
pulse = _view(
    "pulse",
    "at:time channel waiting:bigint in_flight:bigint oldest_s:double sent:bigint completed:bigint",
    "failed_tries:bigint dead:bigint deferred:bigint expired:bigint cancelled:bigint ended_ms:bigints",
    "try_ms:bigints step:interval",
)
queue = _view(
    "queue",
    "id:bigint status channel endpoint_id:int endpoint payload:json content:bytes payload_hash priority:int",
    "ordering_key idempotency_key correlation_id:uuid headers:json metadata:json scheduled_at:time",
    "next_retry_at:time expires_at:time created_at:time processing_started_at:time unlock_at:time",
    "num_attempts:bigint retry_count:int last_error state:bytes worker redrive_of:bigint replay_of:bigint",
)
schedules = _view(
    "schedules",
    "id:bigint name cron time_zone endpoint_name payload:json priority:int ordering_key expires_after:interval",
    "headers:json metadata:json paused:bool next_at:time last_slot_at:time last_message_id:bigint last_error",
    "created_at:time",
)
settings = _view(
    "settings",
    "name value default_value minimum:bigint maximum:bigint unit description",
)
