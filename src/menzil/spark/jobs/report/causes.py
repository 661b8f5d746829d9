"""Errors without what differs from message to message: the same words and marks as menzil.dlq_causes."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from menzil.report.causes import CLASS, HEX, LOOKED_AT, NUMBER, QUOTED, SHOWN, STATUS, TIME, UUID


def cause(column: str) -> Column:
    """The error without its class, with marks for quoted texts, ids, times and numbers. An HTTP status stays."""
    error = F.regexp_replace(F.left(F.col(column), F.lit(LOOKED_AT)), CLASS, "")
    error = F.regexp_replace(error, QUOTED, '"..."')
    error = F.regexp_replace(error, UUID, "#")
    error = F.translate(error, "\n\r\t", "   ")
    status = F.regexp_extract(error, STATUS, 0)
    rest = F.substr(error, F.length(status) + 1)
    marked = F.regexp_replace(rest, f"{TIME}|{HEX}|{NUMBER}", "#")
    return F.concat(status, F.left(F.rtrim(marked), F.lit(SHOWN)))


def error_class(column: str) -> Column:
    """RETRYABLE, PERMANENT or DISABLE, as the error says in its first words."""
    error = F.col(column)
    return (
        F.when(error.rlike(r"^\s*(\[PERMANENT\]\s*)?\[DISABLE\]"), "DISABLE")
        .when(error.rlike(r"^\s*\[PERMANENT\]"), "PERMANENT")
        .otherwise("RETRYABLE")
    )
