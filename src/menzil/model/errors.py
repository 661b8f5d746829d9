"""What can go wrong, as classes.

Every error carries one sentence, usually one hint, and the SQLSTATE it came from (None when it never reached the
database). A SQL function and the Python method in front of it refuse the same value with the same class.

::

    MenzilError
    ├── UsageError                    the call itself makes no sense: arguments, connection, closed client;
    │                                 25001  a dequeue outside READ COMMITTED
    ├── RefusedError                  the database said no, or would have; nothing was written;
    │   │                             25006  the server or the role accepts no writes
    │   ├── UnknownNameError          42704  no such channel, endpoint, schedule or message
    │   ├── NameTakenError            42710  there is already a channel, endpoint or schedule of that name
    │   ├── DisabledError             55000  the endpoint is disabled or the channel was released
    │   ├── MissingValueError         22004  NULL where a value is needed
    │   ├── InvalidValueError         22023  out of range, bad config, unknown setting, NUL, infinity, no time zone;
    │   │                             22xxx  or a value PostgreSQL could not read
    │   ├── PayloadTooLargeError      54000  over the setting max_payload_size
    │   ├── IdempotencyConflictError  23505  same idempotency key, different payload
    │   ├── QueueFullError            53400  max_queue_size or a channel's max_size
    │   ├── EndpointInUseError        55006  messages still wait for the endpoint
    │   └── CopyError                 MZ003  this database is a copy and gives out no messages
    ├── LeaseError                    this worker no longer owns the message
    │   ├── StaleLeaseError           MZ001  the lease ran out and the message went on without it
    │   └── NotInFlightError          MZ002  the message is not in flight: it ended, or was never leased
    ├── SchemaError                   the database and this client do not fit together
    │   ├── SchemaMissingError        3F000, 42883, 42P01  menzil is not installed there
    │   ├── SchemaTooOldError         the database needs `menzil migrate`
    │   └── SchemaTooNewError         this client needs an upgrade
    ├── PermissionDeniedError         42501  the role may not do this
    ├── BridgeMovedError              MZ004  another process took the records of this batch
    ├── SecretError                   an encrypted secret that the keys of this process do not open
    └── ConnectionFailedError         the server cannot be reached, or the connection broke
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from menzil.model.said import Said

if TYPE_CHECKING:
    import psycopg


class MenzilError(Exception):
    """The base of all errors: a sentence, and perhaps a hint and a SQLSTATE."""

    default_hint: ClassVar[str | None] = None
    default_sqlstate: ClassVar[str | None] = None

    def __init__(self, message: str, *, sqlstate: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate: str | None = sqlstate if sqlstate is not None else self.default_sqlstate
        self.hint: str | None = hint if hint is not None else self.default_hint

    def __str__(self) -> str:
        return f"{self.message}\nHint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions rebuild themselves from args alone, which would lose the hint between processes.
        return (_rebuild, (type(self), self.message, self.sqlstate, self.hint))


def _rebuild(kind: type[MenzilError], message: str, sqlstate: str | None, hint: str | None) -> MenzilError:
    return kind(message, sqlstate=sqlstate, hint=hint)


class UsageError(MenzilError):
    """The call itself is wrong; what the database holds does not matter."""


class RefusedError(MenzilError):
    """The database said no, or would have; nothing was written."""


class UnknownNameError(RefusedError):
    """No channel, endpoint, schedule or message of that name or id."""

    default_sqlstate = "42704"


class NameTakenError(RefusedError):
    """There is already a channel, endpoint or schedule of that name."""

    default_sqlstate = "42710"


class DisabledError(RefusedError):
    """The endpoint is disabled, the channel was released, or the dead letter was redriven already."""

    default_sqlstate = "55000"


class MissingValueError(RefusedError):
    """NULL (None) where a value is needed."""

    default_sqlstate = "22004"


class InvalidValueError(RefusedError):
    """A value out of range, a bad config, an unknown setting or key."""

    default_sqlstate = "22023"


class PayloadTooLargeError(RefusedError):
    """The payload is over the setting max_payload_size."""

    default_sqlstate = "54000"


class IdempotencyConflictError(RefusedError):
    """The idempotency key was used before with a different payload."""

    default_sqlstate = "23505"


class QueueFullError(RefusedError):
    """The queue, or the channel, holds as many messages as it may."""

    default_sqlstate = "53400"


class EndpointInUseError(RefusedError):
    """Messages still wait for the endpoint, so it cannot be dropped."""

    default_sqlstate = "55006"


class CopyError(RefusedError):
    """This database is a copy of another: it gives out no messages and fires no schedules until it is adopted."""

    default_sqlstate = "MZ003"
    default_hint = "run `menzil adopt` if what waits here is to be delivered from here"


class LeaseError(MenzilError):
    """This worker no longer owns the message; its work may be done again."""


class StaleLeaseError(LeaseError):
    """The lease ran out and the message went on without it: it waits again, or another worker has it."""

    default_sqlstate = "MZ001"


class NotInFlightError(LeaseError):
    """The message is not in flight: it ended, or it was never leased."""

    default_sqlstate = "MZ002"


class SchemaError(MenzilError):
    """The database and this client do not fit together."""


class SchemaMissingError(SchemaError):
    """menzil is not installed in this database, or only partly."""

    default_sqlstate = "3F000"
    default_hint = "run `menzil migrate` against this database"


class SchemaTooOldError(SchemaError):
    """The database was installed by an older menzil."""

    default_hint = "run `menzil migrate` against this database"


class SchemaTooNewError(SchemaError):
    """The database was installed by a newer menzil than this client knows."""

    default_hint = "upgrade the menzil package in this process"


class PermissionDeniedError(MenzilError):
    """The role of this connection may not do this."""

    default_sqlstate = "42501"
    default_hint = "let an administrator grant it menzil_application to send, or menzil_admin to do everything"


class BridgeMovedError(MenzilError):
    """The position of a bridge is not where this process read: another process took these records."""

    default_sqlstate = "MZ004"


class SecretError(MenzilError):
    """A secret of an endpoint is encrypted, and the keys of this process do not open it."""

    default_hint = "Give the worker the key, in MENZIL_SECRET_KEY or as secret_key, or set the secret again."


class ConnectionFailedError(MenzilError):
    """The server cannot be reached, or the connection broke."""


#: The class of each SQLSTATE the SQL functions raise on purpose.
BY_SQLSTATE: dict[str, type[MenzilError]] = {
    kind.default_sqlstate: kind
    for kind in (
        UnknownNameError,
        NameTakenError,
        DisabledError,
        MissingValueError,
        InvalidValueError,
        PayloadTooLargeError,
        IdempotencyConflictError,
        QueueFullError,
        EndpointInUseError,
        CopyError,
        BridgeMovedError,
        StaleLeaseError,
        NotInFlightError,
        PermissionDeniedError,
        SchemaMissingError,
    )
    if kind.default_sqlstate is not None
}

# These mean both "not installed" and "your own SQL is wrong"; only the first is ours to explain.
_UNDEFINED = {"3F000", "42883", "42P01"}


READ_ONLY = "25006"

#: The server ended the connection: it stops, or a timeout of the role ended an idle session or a long transaction.
ENDED = frozenset(("57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"))


def read_only() -> RefusedError:
    """Return what to tell a person whose command met a server or a role that accepts no writes."""
    hint = "connect to the primary, or turn off default_transaction_read_only for this role"
    return RefusedError("This connection is read-only.", sqlstate=READ_ONLY, hint=hint)


#: What the server says when it refuses a connection, and what helps. A server may say it in another language.
_REFUSALS = (
    (r'database "(.+)" does not exist', "run `createdb {0}`, then `menzil migrate`"),
    (r'role "(.+)" does not exist', "run `createuser {0}`, or name another user"),
    (r'permission denied for database "(.+)"', "let an administrator run: grant connect on database {0} to this role"),
    (r"password authentication failed|no password supplied", "give the password in the DSN, PGPASSWORD or ~/.pgpass"),
    (r"no pg_hba.conf entry", "let an administrator allow this host, user and database in pg_hba.conf"),
    (
        r"too many clients|connection slots|too many connections",
        "a worker needs five connections: raise the limit of the role, the database or the server, or use a pooler",
    ),
    (r"invalid integer value", "a port is a number"),
    (r'definition of service "(.+)" not found', "write it into ~/.pg_service.conf or the file of PGSERVICEFILE"),
    (r"does not support SSL", "turn ssl on at the server, or take sslmode=require out of the DSN or PGSSLMODE"),
    (
        r"unrecognized configuration parameter|invalid value for parameter",
        "it comes from options in the DSN, PGOPTIONS, PGTZ or PGDATESTYLE",
    ),
    (r"session is (?:not )?read-only|is (?:not )?in hot standby", "no server is what target_session_attrs asks for"),
)  # fmt: skip


def unreachable(error: psycopg.Error) -> ConnectionFailedError:
    """Return what to raise, ``from`` the original, when a connection could not be opened."""
    lines = str(error).strip().splitlines()
    # With several servers psycopg tells of each of them, in a list after the last one.
    each = [line.partition(": connection ")[2] or line for line in lines if line.startswith("- host: ")]
    why = "; ".join(dict.fromkeys(_PREFIX.sub("", line) for line in each or lines[:1]))
    hint = "is it running, and is the DSN right?"
    for pattern, helps in _REFUSALS:
        found = re.search(pattern, why)
        if found:
            from shlex import quote

            hint = helps.format(*map(quote, found.groups()))
            break
    return ConnectionFailedError(f"The server cannot be reached: {why}", sqlstate=error.sqlstate, hint=hint)


_PREFIX = re.compile(r"^(?:connection )?(?:failed|is bad): ")


def translate(error: psycopg.Error) -> MenzilError | None:
    """Return the menzil error this database error stands for, or None when it is not ours to explain.

    Keeps the sentence and the hint of the server. The caller raises it ``from`` the original.
    """
    return translate_said(Said.by(error))


def translate_said(said: Said) -> MenzilError | None:
    """The same for the words of an error that came through any driver."""
    state, sentence, hint = said.sqlstate, said.sentence, said.hint
    if state is None:
        if said.kind == "operational":
            return ConnectionFailedError(sentence, hint=hint)
        return InvalidValueError(sentence, hint=hint) if said.kind == "data" else None
    if state in _UNDEFINED:
        # The server's hint, if any, is about type casts: which does not help where a migration is missing.
        ours = "menzil." in sentence or '"menzil"' in sentence
        return SchemaMissingError(sentence, sqlstate=state) if ours else None
    if state == "25001":  # a dequeue inside a transaction that cannot see what was committed meanwhile
        return UsageError(sentence, sqlstate=state, hint=hint)
    if state == READ_ONLY:
        return read_only()
    if state.startswith("08") or state in ENDED:
        return ConnectionFailedError(sentence, sqlstate=state, hint=hint)
    if "PL/pgSQL" in (said.context or "") and said.function != "exec_stmt_raise":
        # Not raised on purpose: something broke inside a function, and calling it a refusal would hide that.
        return None
    kind = BY_SQLSTATE.get(state)
    if kind is None and state.startswith("22"):
        kind = InvalidValueError  # PostgreSQL itself could not read a value that was given
    return None if kind is None else kind(sentence, sqlstate=state, hint=hint)
