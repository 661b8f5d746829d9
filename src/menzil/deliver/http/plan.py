"""An endpoint made ready: what every request to it has in common is read, checked and spelled out once."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hmac import HMAC
from importlib.metadata import version
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from menzil.deliver.guard import Target
from menzil.deliver.http.cloudevents import CloudEvents
from menzil.deliver.http.excerpt import Hider
from menzil.deliver.http.headers import checked, is_secret, rendered
from menzil.deliver.http.oauth import OAuth
from menzil.deliver.http.signing import signing_keys
from menzil.deliver.http.sigv4 import SigV4, respelled
from menzil.deliver.http.ways import Way, Ways

#: Names of parameters in a URL whose values are credentials; the same words as in the database.
_SECRET_PARAMETER = re.compile("auth|code|cookie|credential|key|pass|pwd|secret|session|sig|token", re.IGNORECASE)
DEFAULT_SECONDS = 10.0
DEFAULT_CONNECT_SECONDS = 5.0


@dataclass(slots=True)
class Plan:
    """What is known of an endpoint before its first message."""

    method: str
    way: Way
    seconds: float
    connect_seconds: float
    headers: dict[str, str] = field(repr=False)  # in lower case, with credentials that do not change
    standing: frozenset[str]  # the names of those that no message may replace
    successes: frozenset[int] | None
    allow_path_suffix: bool
    capture: bool | None
    keys: list[HMAC] = field(repr=False)
    oauth: OAuth | None
    sigv4: SigV4 | None
    events: CloudEvents | None
    secrets: list[str] = field(repr=False)
    opening: str = field(init=False, repr=False)  # the request line and `headers`
    hider: Hider = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.opening = self.opened(self.target.path_and_query, self.headers)
        self.hider = Hider(self.secrets)

    @property
    def target(self) -> Target:
        """Return where it goes."""
        return self.way.target

    def opened(self, path_and_query: str, headers: Mapping[str, str]) -> str:
        """Return the beginning of a request with this path and these headers."""
        whole = f"{self.way.prefix}{path_and_query}"
        return f"{self.method} {whole} HTTP/1.1\r\nhost: {self.target.authority}\r\n{rendered(headers)}"


def make_plan(config: Mapping[str, Any], ways: Ways) -> Plan:
    """Read a config. Raises RefusedError or the guard's RefusedUrlError, for good."""
    auth = config.get("auth") or {}
    way = ways.to(config["url"], config)
    headers = {"user-agent": user_agent(), "accept": "*/*", "accept-encoding": "identity"}
    own = checked(config.get("headers") or {}, "endpoint")
    headers |= own
    if way.proxy_authorization:
        headers["proxy-authorization"] = way.proxy_authorization
    secrets = list(_secrets(config))
    if auth.get("type") == "basic":
        headers["authorization"] = basic(auth["username"], auth["password"])
        secrets.append(headers["authorization"].removeprefix("Basic "))
    elif auth.get("type") == "bearer":
        headers["authorization"] = f"Bearer {auth['token']}"
    elif auth.get("type") == "sigv4":
        way = replace(way, target=replace(way.target, path_and_query=respelled(way.target.path_and_query)))
    checked({"authorization": headers.get("authorization", "")}, "endpoint")
    seconds = float(config.get("timeout_seconds") or DEFAULT_SECONDS)
    connect = float(config.get("connect_timeout_seconds") or min(seconds, DEFAULT_CONNECT_SECONDS))
    statuses = config.get("success_statuses")
    events = config.get("cloudevents")
    return Plan(
        method=config.get("method") or "POST",
        way=way,
        seconds=seconds,
        connect_seconds=connect,
        headers=headers,
        standing=_standing(own, headers, config.get("overridable_headers") or []),
        successes=frozenset(map(int, statuses)) if statuses else None,
        allow_path_suffix=bool(config.get("allow_path_suffix")),
        capture=config.get("capture_response"),
        keys=signing_keys(config.get("signing")),
        oauth=OAuth(auth, ways.to(auth["token_url"], config, system=True)) if auth.get("type") == "oauth2" else None,
        sigv4=_sigv4(auth) if auth.get("type") == "sigv4" else None,
        events=_events(events) if events else None,
        secrets=secrets,
    )


def _standing(own: Iterable[str], all_of_them: Iterable[str], overridable: Iterable[str]) -> frozenset[str]:
    """Return the headers that stand against those of a message: the endpoint's own, and every credential."""
    return (frozenset(own) - {name.lower() for name in overridable}) | {name for name in all_of_them if is_secret(name)}


@lru_cache(maxsize=1)
def user_agent() -> str:
    """Return who is asking."""
    return f"menzil/{version('menzil')}"


def basic(username: str, password: str) -> str:
    """Return the credentials of HTTP basic authentication."""
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


def _sigv4(auth: Mapping[str, Any]) -> SigV4:
    known = ("access_key_id", "secret_access_key", "region", "service", "session_token")
    return SigV4(**{key: auth[key] for key in known if key in auth})


def _events(events: Mapping[str, Any]) -> CloudEvents:
    return CloudEvents(events["mode"] == "structured", events.get("source"), events.get("type"))


def _secrets(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield every value that must not come back to us in an answer and be stored."""
    auth, signing, proxy = (config.get(key) or {} for key in ("auth", "signing", "proxy"))
    for url in (config["url"], auth.get("token_url", "")):
        yield from (value for name, value in parse_qsl(urlsplit(url).query) if _SECRET_PARAMETER.search(name))
    for key in ("password", "token", "client_secret", "secret_access_key", "session_token"):
        if key in auth:
            yield auth[key]
    for secret in [signing.get("secret"), *(signing.get("secrets") or [])]:
        if secret:
            yield secret
            yield secret.removeprefix("whsec_")
    if "password" in proxy:
        yield proxy["password"]
        yield basic(proxy["username"], proxy["password"]).removeprefix("Basic ")
    if private := (config.get("tls") or {}).get("key"):
        yield private
    yield from (value for name, value in (config.get("headers") or {}).items() if is_secret(name))
