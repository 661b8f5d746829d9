"""The outbox of a mapped class: each flush of its objects sends messages, in the transaction of the session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar

from sqlalchemy import event, inspect
from sqlalchemy.exc import NoInspectionAvailable
from sqlalchemy.orm import Session

from menzil.model.errors import UsageError
from menzil.model.wire import Dumps, json_dumps
from menzil.ops import pubsub, sending
from menzil.ops.borrow import run_on

T = TypeVar("T")
Change = Literal["insert", "update", "delete"]
_CHANGES: tuple[Change, ...] = ("insert", "update", "delete")
_OPTIONS = frozenset(
    {
        "priority", "delay", "scheduled_at", "expires_in", "expires_at", "ordering_key", "idempotency_key",
        "correlation_id", "headers", "metadata",
    }
)  # fmt: skip


class Outbox(Generic[T]):
    """A hook on the flushes of sessions; remove() takes it off."""

    def __init__(
        self,
        model: type[T],
        name: str,
        changes: tuple[Change, ...],
        payload: Callable[[T], Any],
        when: Callable[[T], bool] | None,
        publish: bool,
        sessions: Any,
        dumps: Dumps,
        options: dict[str, Any],
    ) -> None:
        self._model, self._name, self._changes, self._payload = model, name, changes, payload
        self._when, self._sessions, self._options, self._dumps = when, sessions, options, dumps
        self._op: Callable[..., Any] = pubsub.publish if publish else sending.send
        event.listen(sessions, "after_flush", self._flushed)

    def remove(self) -> None:
        """Send nothing any more."""
        event.remove(self._sessions, "after_flush", self._flushed)

    def _flushed(self, session: Session, _: object) -> None:
        for one in self._changed(session):
            if self._when is None or self._when(one):
                options = {name: value(one) if callable(value) else value for name, value in self._options.items()}
                run_on(session, self._op(self._name, self._payload(one), dumps=self._dumps, **options))

    def _changed(self, session: Session) -> Iterable[T]:
        """Objects of the class that this flush wrote, in the order they were added where SQLAlchemy knows one."""
        found: dict[Change, Iterable[Any]] = {
            "insert": session.new,
            "update": [one for one in session.dirty if _has_new_values(one)],
            "delete": session.deleted,
        }
        for change in self._changes:
            yield from (one for one in found[change] if isinstance(one, self._model))


def _has_new_values(one: object) -> bool:
    """Whether a column changed. session.is_modified is also true for an object to which only rows of others came."""
    state = inspect(one)
    columns = state.mapper.column_attrs if state is not None else ()
    return any(state.attrs[column.key].history.has_changes() for column in columns)


def outbox(
    model: type[T],
    name: str,
    *,
    payload: Callable[[T], Any],
    on: Change | tuple[Change, ...] = "insert",
    when: Callable[[T], bool] | None = None,
    publish: bool = False,
    sessions: Any = Session,
    dumps: Dumps = json_dumps,
    **options: Any,
) -> Outbox[T]:
    """Send a message to the channel `name` for each object of `model` that a session writes, in its transaction.

    The hook runs after a flush: keys are there, and what fails fails the flush. Statements that pass by the session,
    such as session.execute(insert(…)), send nothing.

    payload   makes the payload of an object
    on        "insert", "update", "delete", or several of them
    when      which objects
    publish   `name` is an event type, and is published
    sessions  a sessionmaker or a class of sessions; all sessions unless given
    options   those of send, each a value or a function of the object: ordering_key=lambda order: order.customer
    """
    changes = (on,) if isinstance(on, str) else tuple(on)
    if not changes or any(change not in _CHANGES for change in changes):
        raise UsageError(f"on={on!r} is not known.", hint=f"give one or several of {', '.join(_CHANGES)}")
    try:
        is_mapped = bool(getattr(inspect(model), "is_mapper", False))
    except NoInspectionAvailable:
        is_mapped = False
    if not is_mapped:
        raise UsageError("outbox takes a class that SQLAlchemy maps.")
    for word, function in (("payload", payload), ("when", when)):
        if not callable(function) and (function is not None or word == "payload"):
            hint = f"write {word}=lambda {model.__name__.lower()}: …"
            raise UsageError(f"{word} is a {type(function).__name__}, not a function of the object.", hint=hint)
    if unknown := options.keys() - _OPTIONS:
        raise UsageError(f"A send has no {sorted(unknown)[0]!r}.", hint=f"it has {', '.join(sorted(_OPTIONS))}")
    return Outbox(model, name, changes, payload, when, publish, sessions, dumps, options)
