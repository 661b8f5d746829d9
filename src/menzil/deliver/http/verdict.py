"""What an answer, or its absence, means for the message."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus

from menzil.deliver.http.excerpt import Hider, line, response
from menzil.deliver.http.retry_after import retry_after
from menzil.deliver.wire import Answer, WireError
from menzil.model.outcome import Complete, Fail, Outcome, Response

_COME_BACK = frozenset({408, 409, 425, 429})
_MAY_NAME_A_TIME = frozenset({429, 503})
_PHRASES = {status.value: f"HTTP {status.value} {status.phrase}" for status in HTTPStatus}


def verdict(
    answer: Answer,
    *,
    successes: frozenset[int] | None,
    hider: Hider,
    milliseconds: int,
    correlation_id: str | None,
    capture: bool,
) -> Outcome:
    """Judge a complete answer."""
    status = answer.status
    good = 200 <= status < 300 if successes is None else status in successes
    if good and not capture:
        return Complete()
    said = response(answer, hider, milliseconds, correlation_id)
    if good:
        return Complete(said)
    return failure(answer, said)


def failure(answer: Answer, said: Response, who: str = "") -> Fail:
    """Judge an answer that is not the one hoped for. `who` answered, when it was not the endpoint."""
    status = answer.status
    phrase = _PHRASES.get(status, f"HTTP {status}")
    excerpt = line(said["body"])
    reason = f"{who}{phrase}: {excerpt}" if excerpt else f"{who}{phrase}"
    if status == 410 and not who:
        return Fail(reason, retry=False, disable=True, response=said)
    if status >= 500 or status in _COME_BACK:
        delay = None
        if status in _MAY_NAME_A_TIME:
            delay = retry_after(answer.header(b"retry-after"), answer.header(b"date"), datetime.now(UTC))
        # A token server that asks for a wait rests the endpoint too: no message of it gets by without a token.
        return Fail(reason, retry=True if delay is None else delay, response=said, rest=delay is not None)
    return Fail(reason, retry=False, response=said)


def no_answer(error: WireError, hider: Hider, milliseconds: int, correlation_id: str | None) -> Fail:
    """Judge a request that was not answered, or not to the end: it may or may not have been taken in, so try again."""
    part = error.answer
    said = response(part, hider, milliseconds, correlation_id) if part is not None else None
    return Fail(hider.hide(str(error)), retry=True, response=said)
