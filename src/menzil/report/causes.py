"""Errors without what differs from message to message: the same words and marks as menzil.dlq_causes."""

from __future__ import annotations

import re

CLASS = r"^\s*(?:\[(?:RETRYABLE|PERMANENT|DISABLE)\]\s*)+"
QUOTED = r'"(?:[^"\\]|\\.)*+"|(?<!\w)\'[^\']*\'(?!\w)'
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(?:Z|[+-][0-9:]+)?"
HEX = r"\b(?:0x)?[a-fA-F]*[0-9][0-9a-fA-F]{7,}\b"
NUMBER = r"[0-9]+(?:[.,][0-9]+)*"
STATUS = r"^HTTP [0-9]{3}\b"

#: What a pattern looks at, and what a cause shows.
LOOKED_AT, SHOWN = 1000, 200

_CLASS, _QUOTED, _UUID, _STATUS = (re.compile(text, re.ASCII) for text in (CLASS, QUOTED, UUID, STATUS))
_MARKED = re.compile(f"{TIME}|{HEX}|{NUMBER}", re.ASCII)
_DISABLE = re.compile(r"^\s*(\[PERMANENT\]\s*)?\[DISABLE\]", re.ASCII)
_PERMANENT = re.compile(r"^\s*\[PERMANENT\]", re.ASCII)


def cause(error: str) -> str:
    """The error without its class, with marks for quoted texts, ids, times and numbers. An HTTP status stays."""
    text = _QUOTED.sub('"..."', _CLASS.sub("", error[:LOOKED_AT]))
    text = _UUID.sub("#", text).translate({10: " ", 13: " ", 9: " "})
    found = _STATUS.match(text)
    status = found[0] if found else ""
    return status + _MARKED.sub("#", text[len(status) :]).rstrip(" ")[:SHOWN]


def error_class(error: str) -> str:
    """RETRYABLE, PERMANENT or DISABLE, as the error says in its first words."""
    if _DISABLE.match(error):
        return "DISABLE"
    return "PERMANENT" if _PERMANENT.match(error) else "RETRYABLE"
