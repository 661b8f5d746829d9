"""An endpoint made ready: what all its batches have in common is read and checked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

from menzil.deliver.broker.overrides import Allowed, read_allowed
from menzil.deliver.guard import Target
from menzil.deliver.http.cloudevents import CloudEvents
from menzil.deliver.http.excerpt import Hider
from menzil.deliver.http.headers import checked, is_secret
from menzil.deliver.http.tls import Contexts

DEFAULT_SECONDS = 10.0
DEFAULT_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of an endpoint before its first batch."""

    config: Mapping[str, Any] = field(repr=False)
    targets: tuple[Target, ...]  # servers, in the order in which they are tried
    tls: SSLContext | None = field(repr=False)
    seconds: float  # from handing over to the acknowledgement
    connect_seconds: float  # the part of it for a new connection
    headers: dict[str, str] = field(repr=False)
    events: CloudEvents | None
    overrides: Allowed  # what a message may change
    capture: bool | None
    hider: Hider = field(repr=False)
    worker: str
    adds_nothing: bool  # a plain message goes over the wire with what is its own
    notes: set[str] = field(default_factory=set, repr=False)  # what connections of the endpoint leave for later ones


def make_plan(config: Mapping[str, Any], targets: tuple[Target, ...], contexts: Contexts, worker: str) -> Plan:
    """Read the keys that all brokers share. Raises RefusedError."""
    tls = config.get("tls")
    seconds = float(config.get("timeout_seconds") or DEFAULT_SECONDS)
    events = config.get("cloudevents")
    headers = checked(config.get("headers") or {}, "endpoint")
    given = {key: value for key, value in (tls or {}).items() if key != "enabled"}
    return Plan(
        config=config,
        targets=targets,
        tls=contexts.of(given) if tls is not None and tls.get("enabled") is not False else None,
        seconds=seconds,
        connect_seconds=float(config.get("connect_timeout_seconds") or min(seconds, DEFAULT_CONNECT_SECONDS)),
        headers=headers,
        events=CloudEvents(events["mode"] == "structured", events.get("source"), events.get("type"))
        if events
        else None,
        overrides=read_allowed(config),
        capture=config.get("capture_response"),
        hider=Hider(_secrets(config)),
        worker=worker,
        adds_nothing=not headers and not events,
    )


def _secrets(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield every value that a server might say back, and that must not be stored."""
    auth = config.get("auth") or {}
    yield from (auth[key] for key in ("password", "token", "client_secret", "nkey_seed", "credentials") if key in auth)
    if private := (config.get("tls") or {}).get("key"):
        yield private
    yield from (value for name, value in (config.get("headers") or {}).items() if is_secret(name))
