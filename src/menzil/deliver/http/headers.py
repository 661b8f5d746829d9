"""Headers, checked again before they reach the wire: what the database checked may have come from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from menzil.deliver.http.errors import RefusedError

#: Those of the connection, and those that menzil signs.
FORBIDDEN = frozenset({
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "webhook-id", "webhook-signature",
    "webhook-timestamp",
})  # fmt: skip

#: Always ours, but no harm is meant by a message that was received with it and is sent on.
ATTEMPT = "x-menzil-attempt"

#: Names whose values are credentials as a rule; the same words as in the database.
_SECRET = re.compile(r"(-auth|authorization|authentication|cookie|credential|key|password|secret|signature|token)")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,255}")
_BAD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LONGEST = 8192


def checked(headers: Mapping[str, Any], whose: str) -> dict[str, str]:
    """Return the headers under lower-case names, or raise RefusedError, which shows no value."""
    found = {}
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise RefusedError(f"The {whose} has an invalid header name.")
        key = name.lower()
        if key == ATTEMPT:
            continue
        if key in FORBIDDEN:
            raise RefusedError(f"The {whose} may not set the header {key}.")
        if not isinstance(value, str) or len(value) > _LONGEST or _BAD.search(value):
            raise RefusedError(f"The header {key} of the {whose} is not one line of text.")
        found[key] = value.strip()
    return found


def is_secret(name: str) -> bool:
    """Whether the value of this header is treated as a secret."""
    return _SECRET.search(name.lower()) is not None


def rendered(headers: Mapping[str, str]) -> str:
    """Return the lines of a request."""
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
