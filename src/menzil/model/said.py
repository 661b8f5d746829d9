"""What a database said with an error, whichever driver carried it here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Said:
    """The words of one error. Without a `sqlstate` it never reached the database, and `kind` is all that is known."""

    sqlstate: str | None
    sentence: str
    hint: str | None = None
    context: str | None = None
    function: str | None = None  # of the server's source, not of ours
    kind: Literal["operational", "data", None] = None

    @classmethod
    def by(cls, error: BaseException) -> Said:
        """Read the error of any driver; SQLAlchemy wraps them, and its driver for asyncpg does so once more."""
        inner = _innermost(error)
        state = getattr(inner, "sqlstate", None) or getattr(inner, "pgcode", None)
        said: Any = getattr(inner, "diag", None)
        if said is not None:  # psycopg, psycopg2
            return cls(
                state,
                said.message_primary or str(inner).strip() or type(inner).__name__,
                said.message_hint,
                said.context,
                said.source_function,
                _kind(inner, state),
            )
        fields = inner.args[0] if inner.args and isinstance(inner.args[0], dict) else {}  # pg8000
        return cls(
            state or fields.get("C"),
            getattr(inner, "message", None) or fields.get("M") or str(inner).strip() or type(inner).__name__,
            getattr(inner, "hint", None) or fields.get("H"),
            getattr(inner, "context", None) or fields.get("W"),
            getattr(inner, "server_source_function", None) or fields.get("R"),
        )


def _innermost(error: BaseException) -> BaseException:
    wrapped: BaseException | None = getattr(error, "orig", None)
    if wrapped is None:
        return error
    # The driver for asyncpg raises its own class from the error of asyncpg, which alone has the hint.
    cause = wrapped.__cause__
    return cause if cause is not None and hasattr(cause, "sqlstate") else wrapped


def _kind(error: BaseException, state: str | None) -> Literal["operational", "data", None]:
    if state is not None:
        return None
    names = {base.__name__ for base in type(error).__mro__}
    return "operational" if "OperationalError" in names else "data" if "DataError" in names else None
