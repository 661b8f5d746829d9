"""Handlers whose transaction is that of an ORM: a session of SQLAlchemy, or Django's.

The end of the message is one more statement of that transaction. It runs like every call of menzil on a connection of
the caller (ops/borrow.py), so any driver will do that the ORM uses for PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from menzil.model.errors import SchemaMissingError, UsageError
from menzil.model.message import Message
from menzil.model.outcome import Outcome
from menzil.ops.borrow import run_on, run_on_async
from menzil.worker import outcomes
from menzil.worker.endings import UndoError, ending, settling
from menzil.worker.handler import Handler
from menzil.worker.log import Hide
from menzil.worker.outcomes import Settled


def in_session(handler: Handler, hide: Hide) -> Callable[[Message], Outcome | Settled]:
    """Return how a plain function is called with a session of the sessionmaker."""
    maker, function = handler.transaction, handler.function

    def call(message: Message) -> Outcome | Settled:
        try:
            with maker.begin() as session:
                outcome = outcomes.read(function(message, session), message.channel)
                op = ending(message, outcome, hide)
                _still_open(session)
                with _where_menzil_is(), settling(message, outcome):
                    run_on(session, op)
        except UndoError as undo:
            return undo.outcome
        return Settled(outcome)

    return call


def in_async_session(handler: Handler, hide: Hide) -> Callable[[Message], Awaitable[Outcome | Settled]]:
    """Return how an async handler is called with a session of the async_sessionmaker."""
    maker, function = handler.transaction, handler.function

    async def call(message: Message) -> Outcome | Settled:
        try:
            async with maker.begin() as session:
                outcome = outcomes.read(await function(message, session), message.channel)
                op = ending(message, outcome, hide)
                _still_open(session)
                with _where_menzil_is(), settling(message, outcome):
                    await run_on_async(session, op)
        except UndoError as undo:
            return undo.outcome
        return Settled(outcome)

    return call


def in_django(handler: Handler, hide: Hide) -> Callable[[Message], Outcome | Settled]:
    """Return how a plain function is called inside transaction.atomic()."""
    function = handler.function
    alias = handler.transaction.partition(":")[2] or "default"
    db = _django_db(alias)

    def call(message: Message) -> Outcome | Settled:
        atomic: AbstractContextManager[Any] = db.transaction.atomic(using=alias)
        try:
            with atomic:
                outcome = outcomes.read(function(message), message.channel)
                op = ending(message, outcome, hide)
                with _where_menzil_is(), settling(message, outcome):
                    run_on(db.connections[alias], op)
        except UndoError as undo:
            return undo.outcome
        return Settled(outcome)

    return call


def _django_db(alias: str) -> Any:
    """Import django.db; refuse an alias that is not there when the worker starts, not at the first message."""
    try:
        db: Any = import_module("django.db")
        vendor = db.connections[alias].vendor
    except Exception as error:  # not installed, not configured, no such alias
        raise UsageError(
            f"Django's database {alias!r} cannot be used: {error}",
            hint="set DJANGO_SETTINGS_MODULE, call django.setup()",
        ) from error
    if vendor != "postgresql":
        raise UsageError(f"Django's database {alias!r} speaks to {vendor}, not to PostgreSQL.")
    return db


def _still_open(session: Any) -> None:
    if not session.in_transaction() or not session.is_active:
        raise UsageError(
            "The handler ended the transaction of its session.", hint="leave commit() and rollback() to the worker"
        )


@contextmanager
def _where_menzil_is() -> Iterator[None]:
    try:
        yield
    except SchemaMissingError as error:
        raise UsageError(
            "The transaction of the handler is in a database without menzil.",
            hint="transaction= must lead to the database that the worker serves",
        ) from error


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and what SQLAlchemy or Django wrapped."""
    found: BaseException | None = error
    for _ in range(5):
        if found is None:
            return
        yield found
        orig = getattr(found, "orig", None)
        found = orig if isinstance(orig, BaseException) else found.__cause__


def met_another(error: BaseException) -> bool:
    """Whether the transaction met another one: a serialization failure or a deadlock, of any driver."""
    states = (getattr(one, "sqlstate", None) or getattr(one, "pgcode", None) for one in causes(error))
    return any(state in ("40001", "40P01") for state in states)
