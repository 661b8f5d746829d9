"""How clients and workers connect: autocommit and no session state, so that a pooler may stand between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from menzil.model.errors import (
    MenzilError,
    PermissionDeniedError,
    SchemaMissingError,
    SchemaTooNewError,
    SchemaTooOldError,
)
from menzil.model.version import SCHEMA_VERSION_KNOWN
from menzil.ops import upkeep
from menzil.ops.dsn import cannot_reach, explained, understood
from menzil.ops.loading import read_plainly
from menzil.ops.op import Op
from menzil.ops.run import run, run_async

T = TypeVar("T")
Conn = psycopg.Connection[Any]
AsyncConn = psycopg.AsyncConnection[Any]

#: How the database refuses a dequeue outside READ COMMITTED.
NOT_READ_COMMITTED = "25001"

#: What every connection adds to its DSN. The encoding is always UTF-8, also where the DSN names another.
#: A pooler in transaction mode accepts all of it.
_ADDED = {"connect_timeout": 10}
_ALWAYS = {"client_encoding": "utf8", "autocommit": True}


def options(dsn: str, *, prepare: bool, **added: Any) -> dict[str, Any]:
    """Return what to connect with besides the DSN; what the DSN says itself stays, but for the encoding."""
    given = conninfo_to_dict(understood(dsn))
    own = {name: value for name, value in (_ADDED | added).items() if name not in given}
    return own | _ALWAYS | {"prepare_threshold": 5 if prepare else None}


def connect(dsn: str, given: Mapping[str, Any]) -> Conn:
    """Open a connection with these options."""
    try:
        return psycopg.connect(dsn, **given)
    except psycopg.Error as error:
        raise cannot_reach(error, dsn) from error


async def connect_async(dsn: str, given: Mapping[str, Any]) -> AsyncConn:
    """Open a connection with these options."""
    try:
        return await psycopg.AsyncConnection.connect(dsn, **given)
    except psycopg.Error as error:
        raise cannot_reach(error, dsn) from error


def configure(conn: Conn) -> None:
    """Make a connection fit for Ops. READ COMMITTED is said in BEGIN where there is one; the session stays as it is."""
    read_plainly(conn)
    conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED


async def configure_async(conn: AsyncConn) -> None:
    """The same for an async one."""
    read_plainly(conn)
    await conn.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)


def handshake(conn: Conn, who: str, dsn: str, limits: Op[None] | None = None) -> bool:
    """Refuse a schema that this client or worker does not fit; tell whether a lone statement is READ COMMITTED.

    `limits`: what bounds each question, for a caller that would rather have no answer than wait for a lock.
    """
    try:
        try:
            return _fits(_bounded(conn, upkeep.handshake(), limits), who)
        except SchemaMissingError:
            raise _too_old(_bounded(conn, upkeep.schema_version(), limits), who) from None
    except SchemaMissingError as error:
        raise explained(_missing(conn, error), dsn) from error
    except MenzilError as error:
        raise explained(_granted(conn, error, who), dsn) from error.__cause__


async def handshake_async(conn: AsyncConn, who: str, dsn: str) -> bool:
    """The same on an async one."""
    try:
        try:
            return _fits(await run_async(conn, upkeep.handshake(), own=True), who)
        except SchemaMissingError:
            raise _too_old(await run_async(conn, upkeep.schema_version(), own=True), who) from None
    except SchemaMissingError as error:
        raise explained(_missing(conn, error), dsn) from error
    except MenzilError as error:
        raise explained(_granted(conn, error, who), dsn) from error.__cause__


def _bounded(conn: Conn, asked: Op[T], limits: Op[None] | None) -> T:
    if limits is None:
        return run(conn, asked, own=True)
    with conn.transaction():
        run(conn, limits, own=True)
        return run(conn, asked, own=True)


def _missing(conn: Conn | AsyncConn, error: SchemaMissingError) -> SchemaMissingError:
    return SchemaMissingError(f"menzil is not installed in database {conn.info.dbname}.", sqlstate=error.sqlstate)


def _too_old(installed: int, who: str) -> SchemaTooOldError:
    return SchemaTooOldError(f"The database has schema {installed}; this {who} needs {SCHEMA_VERSION_KNOWN}.")


def _granted(conn: Conn | AsyncConn, error: MenzilError, who: str) -> MenzilError:
    # The handshake asks for the version, which is granted with every role: the hint names what this caller is about.
    if isinstance(error, PermissionDeniedError):
        role = "menzil_worker" if who == "worker" else "menzil_application (to send) or menzil_worker (to consume)"
        error.hint = f"let an administrator run: grant {role} to {conn.info.user}"
    return error


def _fits(answer: upkeep.Handshake, who: str) -> bool:
    if answer.installed < SCHEMA_VERSION_KNOWN:
        raise _too_old(answer.installed, who)
    if answer.compatible_from > SCHEMA_VERSION_KNOWN:
        raise SchemaTooNewError(
            f"The database has schema {answer.installed} and serves clients from schema {answer.compatible_from} on; "
            f"this {who} knows {SCHEMA_VERSION_KNOWN}."
        )
    return answer.read_committed
