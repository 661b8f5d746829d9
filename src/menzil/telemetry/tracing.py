"""Whether this process traces, asked before every call: the answer No costs a look into sys.modules.

A program that traces has imported OpenTelemetry, because it has installed an SDK. So nothing is imported here before
the program has done so, and where it never does, no span, no context and no measurement is made.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from menzil.model.errors import UsageError
from menzil.model.message import Message

if TYPE_CHECKING:
    from menzil.telemetry.consuming import Processing
    from menzil.telemetry.spans import Spans

Parent = Literal["link", "creation"]

_UNKNOWN = object()

#: The delivery that this task or thread works on, for spans below it; None where deliveries are not traced.
PROCESSING: ContextVar[Processing | None] = ContextVar("menzil_processing", default=None)

#: By id of a message, what a batch of deliveries carries of each trace; None where deliveries are not traced.
CARRIED: ContextVar[Mapping[int, Mapping[str, str]] | None] = ContextVar("menzil_carried", default=None)


@dataclass(frozen=True, slots=True)
class Tracing:
    """How messages are traced, once the program has installed an OpenTelemetry SDK.

    create_spans  whether a batch of up to 100 messages gets a span for each of them
    parent        "link": a process span begins a trace of its own and links to the creation context of its message;
                  "creation": it continues the trace of the sender
    keys          whether ordering keys and idempotency keys become attributes
    body_size     whether the size of the body becomes an attribute
    template      for channels named after tenants: makes "mail-{tenant}" of "mail-42", or None of any other name
    """

    create_spans: bool = True
    parent: Parent = "link"
    keys: bool = False
    body_size: bool = False
    template: Callable[[str], str | None] | None = None

    def __post_init__(self) -> None:
        """Refuse what could never work now, not at the first message."""
        if self.parent not in ("link", "creation"):
            raise UsageError(f"parent={self.parent!r} is not known.", hint='give "link" or "creation"')
        if self.template is not None and not callable(self.template):
            raise UsageError("template must be a function from the name of a channel to its template.")


def read_tracing(given: Tracing | bool) -> Tracing | None:
    """Read what was said as `tracing`: True is everything by default, False is nothing."""
    if given is True:
        return Tracing()
    if given is False:
        return None
    if not isinstance(given, Tracing):
        raise UsageError(f"tracing= cannot be {type(given).__name__}.", hint="give menzil.Tracing(…), True or False")
    return given


def spans(how: Tracing | None) -> Spans | None:
    """What makes the spans and measurements of a call; None in a process that takes neither."""
    if how is None:
        return None
    if not _loaded:
        _load()
    tracers, meters = _tracers(), _meters()
    if tracers is None and meters is None:
        return None
    from menzil.telemetry.spans import made

    return made(tracers, meters, how)


@contextmanager
def processing(message: Message, tracing: Tracing | bool = True) -> Iterator[None]:
    """Work on a message that you dequeued yourself: inside, its process span is current, as in a handler."""
    made = spans(read_tracing(tracing))
    if made is None:
        yield
        return
    with made.process(message):
        yield


# The public functions read the environment before they answer, which takes ten times as long as all of this. They are
# asked where the API has no variable of that name.


def _tracers() -> Any:
    """The provider of tracers, or None. Without an SDK the API still passes on a context that came from elsewhere."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    provider = api.__dict__.get("_TRACER_PROVIDER", _UNKNOWN)
    if provider is None:
        return _quiet(api) if sys.modules["opentelemetry.context"].get_current() else None
    return api.get_tracer_provider() if provider is _UNKNOWN else provider


@cache
def _quiet(api: Any) -> Any:
    """A provider whose spans are not recorded and have the current context."""
    return api.NoOpTracerProvider()


def _meters() -> Any:
    """The provider of meters, or None."""
    api = sys.modules.get("opentelemetry.metrics._internal")
    if api is None:
        return None
    provider = api.__dict__.get("_METER_PROVIDER", _UNKNOWN)
    return api.get_meter_provider() if provider is _UNKNOWN else provider


_loaded = False


def _load() -> None:
    """Let the API load the providers that the environment names; it does so when it is first asked."""
    global _loaded
    _loaded = True
    for variable, module, ask in (
        ("OTEL_PYTHON_TRACER_PROVIDER", "opentelemetry.trace", "get_tracer_provider"),
        ("OTEL_PYTHON_METER_PROVIDER", "opentelemetry.metrics", "get_meter_provider"),
    ):
        if variable in os.environ:
            with suppress(Exception):  # the API has logged why; messages travel without spans
                getattr(import_module(module), ask)()
