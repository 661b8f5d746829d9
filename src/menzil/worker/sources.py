"""Which sources a worker has: for endpoints, for async handlers, for plain functions, for each handler apart."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from menzil.worker.django import tidily, tidily_awaited
from menzil.worker.handler import Handler
from menzil.worker.hooks import surround, telling
from menzil.worker.options import BATCH, CONNECTIONS, LEASE
from menzil.worker.permits import Pool
from menzil.worker.source import Call, Source
from menzil.worker.transaction import call_within
from menzil.worker.ways import Way

if TYPE_CHECKING:
    from menzil.worker.shift import Shift


@dataclass(frozen=True, slots=True)
class Plan:
    """The sources, the names for the registry (None: all endpoints), and endpoints that were asked for by name."""

    sources: list[Source]
    names: list[str] | None
    named_endpoints: list[str]


#: Stands in the registry of workers for all endpoints, beside the channels of handlers. menzil._serves reads it.
ENDPOINTS = "(endpoints)"


def plan(shift: Shift, endpoint_lease: float) -> Plan:
    """Make the sources this worker was asked for."""
    options = shift.options
    wanted = None if options.channels is None else set(options.channels)
    chosen = {
        handler: [name for name in handler.channels if wanted is None or name in wanted] for handler in shift.handlers
    }
    chosen = {handler: names for handler, names in chosen.items() if names}
    sources = [_own(shift, handler, names) for handler, names in chosen.items() if handler.is_apart]
    for name, is_async in (("handlers", True), ("functions", False)):
        some = {one: names for one, names in chosen.items() if not one.is_apart and one.is_async is is_async}
        if some:
            sources.append(_shared(shift, name, some))
    handled = {name for names in chosen.values() for name in names}
    named = sorted((wanted or set()) - handled)
    if options.endpoints and (wanted is None or named):
        sources.append(
            Source(
                shift,
                "endpoints",
                lambda _: shift.post.deliver,
                channels=named or None,
                endpoints=not named,
                is_post=True,
                concurrency=options.concurrency,
                lease=options.lease or endpoint_lease,
                batch=options.batch or BATCH,
                many=(shift.post.size, shift.post.deliver_many),
                pool=_pool(shift, "endpoints", options.concurrency),
            )
        )
    all_endpoints = any(source.endpoints for source in sources)
    names = [*sorted(handled | set(named)), *([ENDPOINTS] if all_endpoints else [])]
    return Plan(sources, None if names == [ENDPOINTS] else names, named)


def _shared(shift: Shift, name: str, chosen: dict[Handler, list[str]]) -> Source:
    options = shift.options
    calls = {channel: _call(shift, handler) for handler, channels in chosen.items() for channel in channels}
    most = min(_most(shift, handler) for handler in chosen)
    return Source(
        shift,
        name,
        calls.__getitem__,
        channels=list(calls),
        concurrency=most,
        lease=options.lease or LEASE,
        batch=options.batch or BATCH,
        pool=_pool(shift, name, most),
    )


def _most(shift: Shift, handler: Handler) -> int:
    """How many messages a handler without a concurrency of its own takes at once."""
    options = shift.options
    if handler.way is not Way.NONE:
        return min(CONNECTIONS, options.concurrency)
    return options.concurrency if handler.is_async else min(options.threads, options.concurrency)


def _own(shift: Shift, handler: Handler, names: list[str]) -> Source:
    options = shift.options
    call, most = _call(shift, handler), handler.concurrency or _most(shift, handler)
    return Source(
        shift,
        handler.name,
        lambda _: call,
        channels=names,
        apart=handler.way is not Way.NONE,
        concurrency=most,
        lease=handler.lease or options.lease or LEASE,
        batch=options.batch or BATCH,
        pool=_pool(shift, handler, most),
    )


def _pool(shift: Shift, kind: Hashable, size: int) -> Pool | None:
    """The permits that sources of this kind share; None where there is only one database."""
    return shift.branch.pool(kind, size) if shift.branch else None


def _call(shift: Shift, handler: Handler) -> Call:
    """Return how a handler is called: inside the hooks of its worker, in its transaction, in a thread."""
    hooks = shift.hooks
    handler = replace(handler, function=surround(handler.call, hooks.around, awaited=handler.is_async), payload=None)
    call = _bare_call(shift, handler)
    if not hooks.on_error:
        return call
    return telling(call, lambda message, error: hooks.tell(message, error, shift.threads, shift.log))


def _bare_call(shift: Shift, handler: Handler) -> Call:
    if handler.way is not Way.NONE:
        return call_within(handler, shift.lender, lambda: shift.threads, shift.hide)
    if handler.is_async:
        return tidily_awaited(handler.function)
    function = tidily(handler.function)
    return lambda message: shift.threads.start(function, message)
