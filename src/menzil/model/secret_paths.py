"""Where the secrets of an endpoint's config are: the same rules as in SQL, for code that must know before SQL does.

A test compares them with functions/3_verbs/endpoint/config_rules.sql and menzil._is_secret_header.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from menzil.model.errors import InvalidValueError


class Rule(NamedTuple):
    """A key of a config that holds a secret, or several."""

    path: tuple[str, ...]
    kind: str  # secret, signing secret, signing secrets, private key, credentials
    minimum: int | None = None
    maximum: int | None = None


HTTP = (
    Rule(("auth", "password"), "secret", 0, 8192),
    Rule(("auth", "token"), "secret", 1, 8192),
    Rule(("auth", "client_secret"), "secret", 1, 8192),
    Rule(("auth", "secret_access_key"), "secret", 1, 256),
    Rule(("auth", "session_token"), "secret", 1, 8192),
    Rule(("signing", "secret"), "signing secret"),
    Rule(("signing", "secrets"), "signing secrets", 1, 5),
    Rule(("tls", "key"), "private key", None, 65536),
    Rule(("proxy", "password"), "secret", 0, 8192),
)
REDIS = (
    Rule(("auth", "password"), "secret", 0, 8192),
    Rule(("tls", "key"), "private key", None, 65536),
)
NATS = (
    *REDIS,
    Rule(("auth", "token"), "secret", 1, 8192),
    Rule(("auth", "nkey_seed"), "secret", 58, 58),
    Rule(("auth", "credentials"), "credentials", None, 65536),
)
KAFKA = (*REDIS, Rule(("auth", "client_secret"), "secret", 1, 8192))
#: By protocol. No path is a secret in one protocol and none in another, so an alter need not know the protocol.
RULES: Mapping[str, tuple[Rule, ...]] = {
    "amqp": REDIS,
    "http": HTTP,
    "kafka": KAFKA,
    "mqtt": REDIS,
    "nats": NATS,
    "redis": REDIS,
}

_HEADER = re.compile(
    "-auth|authorization|authentication|cookie|credential|key|password|secret|signature|token", re.IGNORECASE | re.ASCII
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SIGNING = re.compile(r"whsec_([A-Za-z0-9+/]{32,88}={0,2})")
_PEM = re.compile(r"[ \t\r\n]*-----BEGIN ([A-Z]+ )?PRIVATE KEY-----\r?\n")
_CREDENTIALS = re.compile(r"-----BEGIN NATS USER JWT-----.*-----BEGIN USER NKEY SEED-----", re.DOTALL)
_LINE = re.compile(r"([\x21-\x7e]([\x20-\x7e]{0,8190}[\x21-\x7e])?)?")

#: Gets what a secret is bound to, its path for people, its rule and its value; returns what takes its place.
Change = Callable[[tuple[str, ...], str, Rule, object], object]


def is_secret_header(name: str) -> bool:
    """Whether the value of a header is a credential, by its name."""
    return _HEADER.search(name) is not None


def change_secrets(config: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return the config with every secret replaced. What is no secret, or not where it should be, stays."""
    changed = dict(config)
    for rule in {rule.path: rule for rules in RULES.values() for rule in rules}.values():
        outer, key = rule.path
        inner = changed.get(outer)
        if not isinstance(inner, Mapping) or key not in inner:
            continue
        value, shown = inner[key], f"{outer}.{key}"
        # A signing secret may go from `secret` to a place in the list `secrets`, and from place to place.
        bound = ("signing",) if rule.kind.startswith("signing") else rule.path
        if rule.kind != "signing secrets":
            value = change(bound, shown, rule, value)
        elif isinstance(value, list | tuple):
            one = Rule(rule.path, "signing secret")
            value = [change(bound, f"{shown}.{place}", one, each) for place, each in enumerate(value)]
        changed[outer] = {**inner, key: value}
    headers = changed.get("headers")
    if isinstance(headers, Mapping):
        rule = Rule(("headers",), "header")
        changed["headers"] = {
            name: change(("headers", name), f"headers.{name}", rule, value) if is_secret_header(name) else value
            for name, value in headers.items()
        }
    return changed


def check_secret(shown: str, rule: Rule, value: str) -> None:
    """Refuse what SQL would refuse, because SQL will not see it."""
    wanted = None
    if rule.kind == "signing secret" and not _is_signing_secret(value):
        wanted = "a Standard Webhooks secret: whsec_ and the base64 of 24 to 64 bytes"
    elif rule.kind == "private key" and not (len(value) <= (rule.maximum or 0) and _PEM.match(value)):
        wanted = "a private key in PEM format"
    elif rule.kind == "credentials" and not (len(value) <= (rule.maximum or 0) and _CREDENTIALS.search(value)):
        wanted = "the text of a credentials file of NATS"
    elif rule.kind == "secret" and not (
        (rule.minimum or 0) <= len(value) <= (rule.maximum or 0) and not _CONTROL.search(value)
    ):
        least = "at most" if rule.minimum is None else f"{rule.minimum} to"
        wanted = f"a text of {least} {rule.maximum} characters without control characters"
    elif rule.kind == "header" and not _LINE.fullmatch(value):
        wanted = "one line of ASCII text of at most 8192 bytes without spaces at its ends"
    if wanted is not None:
        raise InvalidValueError(
            f"In the endpoint config {shown} must be {wanted}.",
            hint="Change the value, or leave the key out if the endpoint can do without it.",
        )


def _is_signing_secret(value: str) -> bool:
    match = _SIGNING.fullmatch(value)
    if match is None or len(match[1]) % 4:  # Python overlooks padding that is too long, PostgreSQL does not
        return False
    try:
        return 24 <= len(base64.b64decode(match[1], validate=True)) <= 64
    except binascii.Error:
        return False
