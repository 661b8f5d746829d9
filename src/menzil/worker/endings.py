"""The end of a message as a statement of the handler's own transaction."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from menzil.model.message import Message
from menzil.model.outcome import Complete, Fail, Outcome
from menzil.ops import consuming
from menzil.ops.op import Op
from menzil.telemetry.tracing import PROCESSING
from menzil.worker.log import Hide
from menzil.worker.outcomes import cleaned


class UndoError(Exception):
    """Carries a failure out of the transaction it rolls back."""

    def __init__(self, outcome: Fail) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


def ending(message: Message, outcome: Outcome, hide: Hide) -> Op[None]:
    """Return what completes or defers the message; a failure is raised, because it rolls everything back."""
    if isinstance(outcome, Fail):
        raise UndoError(outcome)
    outcome = cleaned(outcome, hide)
    if isinstance(outcome, Complete):
        return consuming.complete(message, outcome.response)
    assert not isinstance(outcome, Fail)
    return consuming.defer(message, delay=outcome.seconds, until=outcome.until, state=outcome.state)


def settling(message: Message, outcome: Outcome) -> AbstractContextManager[object]:
    """Make the span of this statement, where deliveries are traced."""
    process = PROCESSING.get()
    if process is None:
        return nullcontext()
    how = "complete" if isinstance(outcome, Complete) else "defer"
    return process.core.settle(how, [message], worker=process.worker, contexts=())
