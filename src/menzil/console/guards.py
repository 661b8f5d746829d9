"""What every answer carries and every request must pass: headers, the same origin, a body of 1 MB at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import Message, Scope, Send

from menzil.console.hosts import bare, is_loopback

MOST_BYTES = 1_048_576
MOST_FIELDS = 1_000

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types menzil",
    )
)


class RefusedRequestError(Exception):
    """A request that is not looked at: a status, a sentence and a hint."""

    def __init__(self, status: int, sentence: str, hint: str | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.hint = status, sentence, hint


def guarded(send: Send, scope: Scope) -> Send:
    """Add the headers to every answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = POLICY
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = _referrer_policy(scope)
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
            headers["X-Frame-Options"] = "DENY"
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


def _referrer_policy(scope: Scope) -> str:
    # On plain HTTP beyond this machine browsers leave Sec-Fetch-Site out, and under no-referrer they send "Origin:
    # null" with a form. Nothing would be left to check; same-origin tells other sites just as little.
    far = scope["scheme"] != "https" and not is_loopback(bare(Headers(scope=scope).get("host", "")))
    return "same-origin" if far else "no-referrer"


def demand_same_origin(request: Request) -> None:
    """Refuse a form that another site sent. The token of the form is the second check, not a substitute."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    named = None if origin in (None, "null") else urlsplit(origin or "").netloc.lower()
    host = request.headers.get("host", "").lower()
    if named is not None and named != host:
        raise RefusedRequestError(403, "This form was sent by another site.", f"It came from {origin}.")
    if site is not None and site != "same-origin":
        raise RefusedRequestError(403, "This form was sent by another site.", f"Sec-Fetch-Site was {site}.")
    if site is None and named is None:
        hint = "Browsers send Origin or Sec-Fetch-Site with a form; a proxy must not take them away."
        raise RefusedRequestError(403, "This form does not say which site sent it.", hint)


async def read_form(request: Request) -> Mapping[str, str]:
    """Read a form; a field that is there several times has commas between."""
    return joined(await read_fields(request))


async def read_fields(request: Request) -> list[tuple[str, str]]:
    """Read the fields of a form, as often as they are there. Only urlencoded: nothing takes files."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise RefusedRequestError(415, "This is not a form.", "Send it as application/x-www-form-urlencoded.")
    body = await read_body(request)
    try:
        return parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise RefusedRequestError(400, "This form could not be read.") from None


def joined(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Fields by name; checked boxes of one name become a list with commas."""
    found: dict[str, str] = {}
    for name, value in fields:
        found[name] = f"{found[name]},{value}" if found.get(name) else value
    return found


async def read_body(request: Request) -> bytes:
    """Read a body of 1 MB at most."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise RefusedRequestError(413, "This request is larger than 1 MB.")
    return body
