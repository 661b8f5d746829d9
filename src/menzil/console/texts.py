"""Texts of strangers on a page: nothing in them moves a cursor, turns a line round or ends an element."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import quote, urlsplit

from markupsafe import Markup, escape

#: C0 and C1 controls but for line feed and tab, separators of lines, directions, and what is shown as nothing at all.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SAFE = re.compile(r"[^\W_][\w.:@+-]*")


def plain(text: str) -> str:
    """The text with such characters as escapes."""
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def finalize(value: Any) -> Any:
    """What every expression of a template passes through: no text gets past it unseen."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return plain(value)


def said(value: Any, longest: int | None = None) -> Markup:
    """A stranger's text, kept from its neighbours' direction; a long one is cut and the rest is in its title."""
    text = plain("" if value is None else str(value))
    if longest is not None and len(text) > longest:
        return Markup('<bdi title="{}">{}</bdi>').format(text[:2000], text[: longest - 1] + "…")
    return Markup("<bdi>{}</bdi>").format(text)


def typed(value: Any) -> Markup:
    """A command to type. A browser breaks a line after a hyphen, which would tear `--option` in two."""
    words = plain(str(value)).split(" ")
    return Markup(" ").join(
        Markup('<span class="nowrap">{}</span>').format(word) if _is_option(word) else word for word in words
    )


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) <= 30  # a longer one may have to break on a phone


def link(value: Any, shown: str | None = None) -> Markup:
    """An address as a link if it is one of the web; any other text stays a text. `shown` stands in its place."""
    text = str(value)
    try:
        parts = urlsplit(text)
        web = parts.scheme in ("http", "https") and bool(parts.hostname) and not HIDDEN.search(text)
    except ValueError:
        web = False
    if not web:
        return said(shown or text)
    return Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(text, escape(said(shown or text)))


def slug(name: str) -> str:
    """A name as one segment of a path: as it is where that is safe, else in base64 behind a tilde."""
    if _SAFE.fullmatch(name) and not name.endswith(".json") and ".." not in name:
        return quote(name, safe=":@+")
    return "~" + base64.urlsafe_b64encode(name.encode("utf-8", "surrogatepass")).rstrip(b"=").decode()


def unslug(segment: str) -> str:
    """The name of a segment."""
    if not segment.startswith("~"):
        return segment
    try:
        return base64.urlsafe_b64decode(segment[1:] + "=" * (-len(segment[1:]) % 4)).decode()
    except (binascii.Error, ValueError):
        return segment
