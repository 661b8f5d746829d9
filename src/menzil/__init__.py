"""menzil: a PostgreSQL-native message queue and transactional outbox."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from menzil.model.errors import (
    BridgeMovedError,
    ConnectionFailedError,
    CopyError,
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
    SecretError,
    StaleLeaseError,
    UnknownNameError,
    UsageError,
)
from menzil.model.message import Message, MessageOf
from menzil.model.options import Lease, Send
from menzil.model.outcome import Complete, Defer, Fail, LeaseOutcome, Outcome, Settlement
from menzil.model.status import Status

if TYPE_CHECKING:
    from menzil.client import AsyncMenzil, Menzil
    from menzil.telemetry.tracing import Tracing, processing
    from menzil.worker import Worker, inbox

__all__ = [
    "AsyncMenzil",
    "BridgeMovedError",
    "Complete",
    "ConnectionFailedError",
    "CopyError",
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
    "MessageOf",
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
    "SecretError",
    "Send",
    "Settlement",
    "StaleLeaseError",
    "Status",
    "Tracing",
    "UnknownNameError",
    "UsageError",
    "Worker",
    "inbox",
    "processing",
]


#: Read when first asked for: programs that only send, and Spark's processes, need nothing of a worker.
_LATER = {
    "AsyncMenzil": "menzil.client",
    "Menzil": "menzil.client",
    "Tracing": "menzil.telemetry.tracing",
    "Worker": "menzil.worker",
    "inbox": "menzil.worker",
    "processing": "menzil.telemetry.tracing",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return globals().setdefault(name, getattr(import_module(_LATER[name]), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
