"""What a message may append to the path of its endpoint: more path, and no way out of it."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from menzil.deliver.http.errors import RefusedError

LONGEST = 1024
# What a segment may hold unescaped: unreserved characters, sub-delimiters, colon and at sign.
_SAFE = "-._~!$&'()*+,;=:@"
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def with_suffix(path_and_query: str, suffix: object) -> str:
    """Return the path with the suffix between it and the query, or raise RefusedError."""
    if not isinstance(suffix, str) or not 1 <= len(suffix) <= LONGEST:
        raise RefusedError(f"The path suffix of the message is no text of 1 to {LONGEST} characters.")
    if "?" in suffix or "#" in suffix or "\\" in suffix or _BAD_ESCAPE.search(suffix):
        raise RefusedError("The path suffix of the message is not a path: it has ?, #, a backslash or a broken escape.")
    segments = [_segment(segment) for segment in suffix.removeprefix("/").split("/")]
    if not all(segments[:-1]):
        raise RefusedError("The path suffix of the message has an empty segment.")
    path, mark, query = path_and_query.partition("?")
    return f"{path.removesuffix('/')}/{'/'.join(segments)}{mark}{query}"


def _segment(text: str) -> str:
    """Spell a segment in the one normal way."""
    try:
        plain = unquote_to_bytes(text)
    except UnicodeEncodeError:
        raise RefusedError("The path suffix of the message is no Unicode text.") from None
    # Servers behind servers unescape more than once, and some cut off what follows a semicolon.
    seen = plain
    while True:
        if _CONTROL.search(seen) or b"/" in seen or b"\\" in seen or seen.partition(b";")[0].strip() in (b".", b".."):
            raise RefusedError("The path suffix of the message leaves the path of the endpoint.")
        again = unquote_to_bytes(seen)
        if again == seen:
            return quote(plain, safe=_SAFE)
        seen = again
