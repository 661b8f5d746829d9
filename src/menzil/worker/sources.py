"""Which sources a worker has: one for endpoints, one that most handlers share, and one for each that wants its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from menzil.worker.handler import Handler
from menzil.worker.options import BATCH, CONNECTIONS, LEASE
from menzil.worker.source import Call, Source
from menzil.worker.transaction import call_within

if TYPE_CHECKING:
    from menzil.worker.shift import Shift


@dataclass(frozen=True, slots=True)
class Plan:
    """The sources, the names for the registry (None: all endpoints), and endpoints that were asked for by name."""

    sources: list[Source]
    names: list[str] | None
    named_endpoints: list[str]


def plan(shift: Shift, endpoint_lease: float) -> Plan:
    """Make the sources this worker was asked for."""
    options = shift.options
    wanted = None if options.channels is None else set(options.channels)
    chosen = {
        handler: [name for name in handler.channels if wanted is None or name in wanted] for handler in shift.handlers
    }
    chosen = {handler: names for handler, names in chosen.items() if names}
    sources = [_own(shift, handler, names) for handler, names in chosen.items() if handler.is_apart]
    shared = {
        name: _call(shift, handler) for handler, names in chosen.items() if not handler.is_apart for name in names
    }
    if shared:
        sources.append(
            Source(
                shift,
                "handlers",
                shared.__getitem__,
                channels=list(shared),
                concurrency=options.concurrency,
                lease=options.lease or LEASE,
                batch=options.batch or BATCH,
            )
        )
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
            )
        )
    all_endpoints = any(source.endpoints for source in sources)
    names = None if all_endpoints and not handled else sorted(handled | set(named))
    return Plan(sources, names, named)


def _own(shift: Shift, handler: Handler, names: list[str]) -> Source:
    options = shift.options
    most = min(CONNECTIONS, options.concurrency) if handler.transaction else options.concurrency
    call = _call(shift, handler)
    return Source(
        shift,
        handler.name,
        lambda _: call,
        channels=names,
        apart=handler.transaction,
        concurrency=handler.concurrency or most,
        lease=handler.lease or options.lease or LEASE,
        batch=options.batch or BATCH,
    )


def _call(shift: Shift, handler: Handler) -> Call:
    if handler.transaction:
        return call_within(handler, shift.lender, lambda: shift.threads)
    if handler.is_async:
        return handler.function
    return lambda message: shift.threads.start(handler.function, message)
