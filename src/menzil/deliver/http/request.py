"""From a message to the bytes of a request."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from menzil.deliver.carried import UNREADABLE, plain_body, plain_type, trace_of
from menzil.deliver.http.cloudevents import STRUCTURED_TYPE
from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.headers import checked, rendered
from menzil.deliver.http.plan import Plan
from menzil.deliver.http.signing import signature
from menzil.deliver.http.suffix import with_suffix
from menzil.model.message import Message


def compose(
    plan: Plan, message: Message, token: str | None = None, trace: Mapping[str, str] | None = None
) -> tuple[bytes, bytes]:
    """Return head and body of a request. Raises RefusedError for what a message may not ask for.

    `trace` are the headers of the span of this request; without them the receiver gets the trace of the message.
    """
    try:
        metadata, given = message.metadata or {}, message.headers
    except (RecursionError, ValueError):
        raise RefusedError(UNREADABLE) from None
    path = plan.target.path_and_query
    opening, fixed = plan.opening, plan.headers
    if "path_suffix" in metadata:
        path = _longer(plan, metadata["path_suffix"])
    if given or path is not plan.target.path_and_query:
        fixed = fixed | _allowed(plan, given) if given else fixed
        opening = plan.opened(path, fixed)

    body, added = _body(plan, message, fixed)
    stamp = int(time.time())
    wire_id = message.wire_id
    if plan.keys:
        added["webhook-signature"] = signature(plan.keys, wire_id, stamp, body)
    if correlation_id := message.correlation_id:
        added["x-correlation-id"] = str(correlation_id)
    if "traceparent" not in fixed:
        if trace:
            added |= trace
        elif metadata:
            added |= trace_of(metadata)
    if token is not None:
        added["authorization"] = f"Bearer {token}"
    if plan.sigv4:
        signed = fixed | {"host": plan.target.authority} | added
        added |= plan.sigv4.headers(plan.method, path, signed, body, datetime.fromtimestamp(stamp, UTC))
    if not fixed.keys().isdisjoint(added):
        opening = plan.opened(path, {name: value for name, value in fixed.items() if name not in added})
    length = "" if plan.method == "GET" else f"content-length: {len(body)}\r\n"
    head = (
        f"{opening}{rendered(added)}{length}webhook-id: {wire_id}\r\nwebhook-timestamp: {stamp}\r\n"
        f"x-menzil-attempt: {message.attempt}\r\n\r\n"
    )
    return head.encode(), body


def _longer(plan: Plan, suffix: object) -> str:
    if not plan.allow_path_suffix:
        raise RefusedError("The message has a path suffix, and allow_path_suffix of the endpoint is not on.")
    return with_suffix(plan.target.path_and_query, suffix)


def _allowed(plan: Plan, given: dict[str, str]) -> dict[str, str]:
    """Return the headers of a message that reach the wire: the endpoint's stand, unless its config lists them."""
    return {name: value for name, value in checked(given, "message").items() if name not in plan.standing}


def _body(plan: Plan, message: Message, fixed: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    """Return the body, and the headers that go with it."""
    events = plan.events
    if plan.method == "GET":
        return b"", events.headers(message) if events else {}
    plain = plain_type(message)
    if events is not None and events.structured:
        return events.document(message, fixed.get("content-type", plain)), {"content-type": STRUCTURED_TYPE}
    added = {} if "content-type" in fixed else {"content-type": plain}
    if events is not None:
        added |= events.headers(message)
    return plain_body(message), added
