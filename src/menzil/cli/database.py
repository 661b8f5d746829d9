"""The database of a command: found, reached, and asked whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar

import click
import psycopg
from psycopg.pq import TransactionStatus

from menzil.cli.actor import actor
from menzil.cli.dsn import dsn_option, resolve
from menzil.install import check
from menzil.model.errors import PermissionDeniedError, RefusedError, SchemaError, UsageError
from menzil.ops import acting, connecting, looking
from menzil.ops.dsn import Dsn, cannot_reach, explained
from menzil.ops.op import Op
from menzil.ops.run import run

T = TypeVar("T")

#: How often a change that met another one is made again.
RETRIES = 5


class Database:
    """One connection in autocommit, and how Ops run on it."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn

    def run(self, op: Op[T]) -> T:
        """Run one Op; it is committed when this returns, unless a transaction is open."""
        if self.conn.info.transaction_status != TransactionStatus.IDLE:
            return run(self.conn, op)
        # A lone statement would have the isolation level of the role, and may then meet others and fail (40001).
        with self.together():
            return run(self.conn, op)

    def change(self, what: Callable[[], T]) -> T:
        """Read, think and write as one step; repeat it when another transaction changed the rows in between."""
        self.conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for _ in range(RETRIES):
            with suppress(psycopg.errors.SerializationFailure), self.conn.transaction():
                self._sign()
                return what()
        raise RefusedError("Another session keeps changing the same row.", hint="try again in a moment")

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let several Ops happen all or not at all."""
        self.conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        with self.conn.transaction():
            self._sign()
            yield

    def _sign(self) -> None:
        """Say in this transaction who acts."""
        run(self.conn, acting.act_as(actor(), "cli"))

    def now(self) -> datetime:
        """The time there, which is the one that counts."""
        return self.run(looking.now())

    def moment(self, when: datetime | timedelta | None) -> datetime | None:
        """A point in time, given as such or as a distance from now."""
        try:
            return self.now() + when if isinstance(when, timedelta) else when
        except OverflowError:
            raise UsageError("That time lies outside the years 1 to 9999.", hint="choose a nearer one") from None


def on_database(command: Callable[..., T]) -> Callable[..., T]:
    """Give a click command the option --dsn and, as its first argument, the database it names."""

    @dsn_option
    @wraps(command)
    def connecting(dsn: str | None, *args: Any, **kwargs: Any) -> T:
        with permitted(dsn) as db:
            return command(db, *args, **kwargs)

    return connecting


@contextmanager
def permitted(dsn: str | None) -> Iterator[Database]:
    """Connect as connected() does, and name the role and the command where a right is missing."""
    with connected(dsn) as db:
        try:
            yield db
        except PermissionDeniedError as error:
            doing = click.get_current_context().command_path
            sentence = f"Role {db.conn.info.user} may not run `{doing}`: {error.message}."
            raise PermissionDeniedError(sentence, sqlstate=error.sqlstate, hint=error.hint) from error


@contextmanager
def connected(dsn: str | None) -> Iterator[Database]:
    """Connect to the database, and refuse one whose schema is not ours."""
    with located(dsn, migrated=True) as found, connect(found) as conn:
        demand(conn, found)
        yield Database(conn)


def demand(conn: psycopg.Connection[Any], dsn: str) -> None:
    """Refuse a database whose schema is not ours, and say which answer led there."""
    try:
        check(conn).demand()
    except (SchemaError, PermissionDeniedError) as error:
        raise explained(error, dsn) from error.__cause__


def connect(dsn: str) -> psycopg.Connection[Any]:
    """Open a connection in autocommit, and set nothing that a pooler in transaction mode would refuse or lose."""
    try:
        return psycopg.connect(dsn, **connecting.options(dsn, prepare=False, fallback_application_name="menzil"))
    except psycopg.Error as error:
        raise cannot_reach(error, dsn) from error


@contextmanager
def located(dsn: str | None, *, migrated: bool) -> Iterator[Dsn]:
    """Return the connection string to use, having started the embedded server if that is the one."""
    found = resolve(dsn)
    if found is not None:
        yield found
        return
    # Only now: a command that has a server needs no embedded one.
    from menzil.embed import open_embedded

    with open_embedded(migrated=migrated) as ours:
        yield ours
