"""Errors without what differs from message to message: the same words and marks as menzil.dlq_causes."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_CLASS = r"^\s*(?:\[(?:RETRYABLE|PERMANENT|DISABLE)\]\s*)+"
_QUOTED = r'"(?:[^"\\]|\\.)*+"|(?<!\w)\'[^\']*\'(?!\w)'
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(?:Z|[+-][0-9:]+)?"
_HEX = r"\b(?:0x)?[a-fA-F]*[0-9][0-9a-fA-F]{7,}\b"
_NUMBER = r"[0-9]+(?:[.,][0-9]+)*"
_STATUS = r"^HTTP [0-9]{3}\b"

#: What a pattern looks at, and what a cause shows.
LOOKED_AT, SHOWN = 1000, 200


def cause(column: str) -> Column:
    """The error without its class, with marks for quoted texts, ids, times and numbers. An HTTP status stays."""
    error = F.regexp_replace(F.left(F.col(column), F.lit(LOOKED_AT)), _CLASS, "")
    error = F.regexp_replace(error, _QUOTED, '"..."')
    error = F.regexp_replace(error, _UUID, "#")
    error = F.translate(error, "\n\r\t", "   ")
    status = F.regexp_extract(error, _STATUS, 0)
    rest = F.substr(error, F.length(status) + 1)
    marked = F.regexp_replace(rest, f"{_TIME}|{_HEX}|{_NUMBER}", "#")
    return F.concat(status, F.left(F.rtrim(marked), F.lit(SHOWN)))


def error_class(column: str) -> Column:
    """RETRYABLE, PERMANENT or DISABLE, as the error says in its first words."""
    error = F.col(column)
    return (
        F.when(error.rlike(r"^\s*(\[PERMANENT\]\s*)?\[DISABLE\]"), "DISABLE")
        .when(error.rlike(r"^\s*\[PERMANENT\]"), "PERMANENT")
        .otherwise("RETRYABLE")
    )
