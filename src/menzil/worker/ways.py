"""Which transaction a handler runs in: none, one of psycopg, one of a SQLAlchemy session, or Django's."""

from __future__ import annotations

from enum import Enum
from typing import Any

from menzil.model.errors import UsageError

_HINT = 'give True, a SQLAlchemy sessionmaker or async_sessionmaker, "django" or "django:ALIAS"'


class Way(Enum):
    """How the worker opens the transaction, and what the handler gets besides the message."""

    NONE = "no transaction"
    PSYCOPG = "a psycopg connection"
    SESSION = "a SQLAlchemy Session"
    ASYNC_SESSION = "a SQLAlchemy AsyncSession"
    DJANGO = "Django's own transaction"

    @property
    def arguments(self) -> tuple[str, ...]:
        """What a handler is called with."""
        match self:
            case Way.PSYCOPG:
                return ("message", "conn")
            case Way.SESSION | Way.ASYNC_SESSION:
                return ("message", "session")
            case _:
                return ("message",)


def way_of(given: Any) -> Way:
    """Read what was said as `transaction`. SQLAlchemy is recognised by its classes and never imported."""
    if given is None or given is False:
        return Way.NONE
    if given is True:
        return Way.PSYCOPG
    if isinstance(given, str):
        if given == "django" or (given.startswith("django:") and len(given) > len("django:")):
            return Way.DJANGO
        from difflib import get_close_matches

        near = 'did you mean "django"?; ' if get_close_matches(given, ["django"]) else ""
        raise UsageError(f"transaction={given!r} is not known.", hint=near + _HINT)
    kinds = {kind.__name__ for kind in type(given).__mro__ if kind.__module__.startswith("sqlalchemy.")}
    if "async_sessionmaker" in kinds:
        return Way.ASYNC_SESSION
    if "sessionmaker" in kinds:
        return Way.SESSION
    if kinds & {"scoped_session", "async_scoped_session"}:
        raise UsageError("A scoped session keeps its session.", hint="give the sessionmaker that it was made from")
    if kinds & {"Engine", "AsyncEngine", "Session", "AsyncSession"}:
        name = type(given).__name__
        raise UsageError(f"A handler needs a new session for each message, not one {name}.", hint=_HINT)
    raise UsageError(f"transaction= cannot be {type(given).__qualname__}.", hint=_HINT)
