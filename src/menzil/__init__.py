"""menzil: a PostgreSQL-native message queue and transactional outbox."""

from menzil.client import AsyncMenzil, Menzil
from menzil.model.errors import (
    ConnectionFailedError,
    DisabledError,
    EndpointInUseError,
    IdempotencyConflictError,
    InvalidValueError,
    LeaseError,
    MenzilError,
    MissingValueError,
    NameTakenError,
    NotInFlightError,
    PayloadTooLargeError,
    PermissionDeniedError,
    QueueFullError,
    RefusedError,
    SchemaError,
    SchemaMissingError,
    SchemaTooNewError,
    SchemaTooOldError,
    StaleLeaseError,
    UnknownNameError,
    UsageError,
)
from menzil.model.message import Message
from menzil.model.options import Defer, Fail, Lease, Send
from menzil.model.outcome import LeaseOutcome, Outcome
from menzil.model.status import Status

__all__ = [
    "AsyncMenzil",
    "ConnectionFailedError",
    "Defer",
    "DisabledError",
    "EndpointInUseError",
    "Fail",
    "IdempotencyConflictError",
    "InvalidValueError",
    "Lease",
    "LeaseError",
    "LeaseOutcome",
    "Menzil",
    "MenzilError",
    "Message",
    "MissingValueError",
    "NameTakenError",
    "NotInFlightError",
    "Outcome",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "QueueFullError",
    "RefusedError",
    "SchemaError",
    "SchemaMissingError",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "Send",
    "StaleLeaseError",
    "Status",
    "UnknownNameError",
    "UsageError",
]
