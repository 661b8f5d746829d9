"""From what a handler returned or raised to an Outcome."""

from __future__ import annotations

import inspect
import traceback
from dataclasses import replace
from pathlib import PurePath

from menzil.model.outcome import Complete, Defer, Fail, Outcome, Response
from menzil.worker import trace
from menzil.worker.log import Hide

#: Nothing to say but that it is done.
COMPLETE = Complete()
#: Handed back by the worker, not deferred by a handler.
BACK = Defer()
LONGEST = 2000
UNREADABLE = "(its text cannot be read)"


def read(result: object, name: str) -> Outcome:
    """Read what the handler of the channel `name` returned: nothing, or an Outcome."""
    if result is None or (type(result) is Complete and result.response is None):
        return COMPLETE
    if isinstance(result, Complete | Defer | Fail):
        return result if not isinstance(result, Fail) or isinstance(result.reason, str) else _worded(result, name)
    if inspect.iscoroutine(result):
        result.close()
        said = "a coroutine that was not awaited (write it with async def)"
    elif isinstance(result, type) and issubclass(result, Complete | Defer | Fail):
        said = f"the class {result.__name__}, not one of it (write {result.__name__}(…))"
    else:
        said = f"a value of type {type(result).__qualname__}"
    return Fail(f"The handler of {name} returned {said}; it may return nothing, Complete, Defer or Fail.")


def _worded(outcome: Fail, name: str) -> Fail:
    """The outcome with a text as its reason: a handler may give the error that it caught, or forget to give one."""
    reason: object = outcome.reason
    if reason is None:
        text = f"The handler of {name} returned a Fail without a reason."
    elif isinstance(reason, BaseException):
        text = f"{_kind(reason)}: {_text(reason)}".removesuffix(": ")
    else:
        text = _text(reason)
    return replace(outcome, reason=text)


def unusable(reason: str) -> Fail:
    """Say why an answer of a protocol was not used; the message is tried again."""
    return Fail(reason)


def fault(error: BaseException) -> Fail:
    """Say what was raised and where, but not with which words: those of a protocol may hold secrets of its endpoint."""
    reason = f"The protocol itself failed with {type(error).__qualname__}{_place(error)}."
    return Fail(reason, response=_frames(trace.own(error, None)))


class Settled:
    """What a call returns when it has settled the message itself."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


def failure(error: BaseException, hide: Hide) -> Fail:
    """Say what was raised and where; it is tried again. The frames of the user's own code are kept with the attempt."""
    try:
        kind, text = _kind(error), hide(_text(error)).strip()
        if len(text) > LONGEST:
            text = text[:LONGEST] + "…"
        reason = f"{kind}: {text}{_place(error)}" if text else f"{kind}{_place(error)}"
        return Fail(reason, response=_frames(trace.own(error, hide)))
    except Exception:  # an exception that cannot be looked at: without an outcome the message would stay in our hands
        return Fail(f"{_kind(error)}: {UNREADABLE}")


def cleaned(outcome: Outcome, hide: Hide) -> Outcome:
    """The outcome as it is stored: error texts and answers are read by people who may not see payloads."""
    if isinstance(outcome, Fail):
        reason, response = hide.redact(outcome.reason), outcome.response
        return replace(outcome, reason=reason, response=response and hide.redactor.value(response))
    if isinstance(outcome, Complete) and outcome.response is not None:
        return replace(outcome, response=hide.redactor.value(outcome.response))
    return outcome


def _kind(error: BaseException) -> str:
    kind = type(error)
    whose = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return f"{whose}{kind.__qualname__}"


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # the user's __str__ is broken, and the message must fail all the same
        return UNREADABLE


def _frames(text: str) -> Response | None:
    return {"traceback": text} if text else None


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    if not frames:
        return ""
    last = frames[-1]
    return f" (in {last.name}, {PurePath(last.filename).name}:{last.lineno})"
