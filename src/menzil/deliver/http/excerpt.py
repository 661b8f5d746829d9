"""What is shown and stored of an answer: a short text, without control characters and without our own secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from json import dumps
from typing import Any
from urllib.parse import quote, quote_plus

from menzil.deliver.wire import Answer

LONGEST = 2000
SHORT = 200
_HIDDEN = "***"
# What looks like credentials, also those of other systems.
_CREDENTIALS = re.compile(
    r"(?<=[Bb]asic )[\w.~+/-]{16,}=*|(?<=[Bb]earer )[\w.~+/-]{16,}=*|(?<=Signature=)[0-9a-f]{64}", re.ASCII
)
_LOOKS = 64  # how much of them has to be seen
_SHOWN_HEADERS = (b"content-type", b"retry-after", b"x-request-id", b"request-id", b"x-correlation-id", b"x-trace-id")
# Control characters, and those that turn the direction of the text around them.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_TEXT = re.compile(r"text/|application/([a-z0-9.+-]*\+)?(json|xml|javascript|x-www-form-urlencoded|problem)")


class Hider:
    """Takes the secrets of one endpoint out of texts: a receiver may answer with what it was sent."""

    __slots__ = ("_known", "_longest")

    def __init__(self, secrets: Iterable[str]) -> None:
        spelled = {way for secret in secrets if len(secret) >= 4 for way in _spellings(secret)}
        # The longest first: one secret may be the beginning of another.
        ways = sorted(spelled, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ways))) if ways else None
        self._longest = max([_LOOKS, *map(len, ways)])

    def hide(self, text: str, longest: int = LONGEST) -> str:
        """Return the beginning of a text with a mark in place of each secret. No part of a secret stays at its end."""
        part = text[: longest + self._longest]
        found = part if self._known is None else self._known.sub(_HIDDEN, part)
        found = _CREDENTIALS.sub(_HIDDEN, found)
        if len(part) < len(text):
            found = found[: -self._longest]
        return found[:longest]


def _spellings(secret: str) -> set[str]:
    """Return how a receiver may spell what it says back: plain, in JSON, in a URL, in a log, in HTML."""
    quoted = {dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1], escape(secret)}
    return {secret, secret.strip(), quote(secret), quote(secret, safe=""), quote_plus(secret)} | quoted


def excerpt(answer: Answer, hider: Hider) -> str:
    """Return the beginning of a body as text; of a body that is not text, its type and size."""
    body = answer.body
    if not body:
        return ""
    kind = (answer.header(b"content-type") or "text/plain").lower()
    coding = answer.header(b"content-encoding")
    if coding and coding.lower() != "identity":
        return f"({len(body)} bytes, encoded as {safe(coding, hider, 40)})"
    if not _TEXT.match(kind):
        return f"({len(body)} bytes of {safe(kind, hider, 80)})"
    return safe(body.decode("utf-8", "replace"), hider, LONGEST)


def safe(text: str, hider: Hider, longest: int) -> str:
    """Return a text that is fit to be stored and shown. Secrets go first: a cut could leave half of one."""
    return _UNSAFE.sub("\ufffd", hider.hide(text, longest))


def line(text: str) -> str:
    """Return the beginning of a text on one line, for an error."""
    found = " ".join(text[: 4 * SHORT].split())
    return found if len(found) <= SHORT else found[: SHORT - 1] + "…"


def response(answer: Answer, hider: Hider, milliseconds: int, correlation_id: str | None) -> dict[str, Any]:
    """Return an answer as it is stored."""
    named = ((name, answer.header(name)) for name in _SHOWN_HEADERS)
    headers = {name.decode(): safe(value, hider, SHORT) for name, value in named if value}
    found: dict[str, Any] = {"status": answer.status, "duration_ms": milliseconds, "body": excerpt(answer, hider)}
    if headers:
        found["headers"] = headers
    if correlation_id:
        found["correlation_id"] = correlation_id
    return found
