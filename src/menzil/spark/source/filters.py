"""Filters that Spark hands down, as SQL. Pure functions.

Spark drops a filter that a source takes over, so the SQL must agree with Spark on every value, NULL and NaN included.
A filter that might not agree is left to Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from menzil.spark.source.relations import Column, Relation

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_COMPARISONS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "EqualNullSafe": "is not distinct from",
}
_STRINGS = {
    "StringStartsWith": "starts_with({column}, {value})",
    "StringEndsWith": "right({column}, length({value})) = {value}",
    "StringContains": "strpos({column}, {value}) > 0",
}
_INTEGERS = {"smallint", "integer", "bigint"}
_TEXTS = {"text", "jsonb", "uuid", "xid8", "interval"}
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Untranslatable(Exception):  # noqa: N818 - a turn in the road, not an error
    """This filter has no SQL that surely means the same."""


def split(filters: Sequence[Filter], relation: Relation) -> tuple[list[str], list[Filter]]:
    """The conditions PostgreSQL checks, and the filters that stay with Spark."""
    taken: list[str] = []
    left: list[Filter] = []
    for each in filters:
        try:
            taken.append(condition(each, relation))
        except Untranslatable:
            left.append(each)
    return taken, left


def condition(given: Filter, relation: Relation) -> str:
    """The SQL of one filter, in brackets where it needs them."""
    kind = type(given).__name__
    if kind == "Not":
        return f"not ({condition(given.child, relation)})"  # type: ignore[attr-defined]
    path: tuple[str, ...] = given.attribute  # type: ignore[attr-defined]
    if len(path) != 1:
        raise Untranslatable
    column = relation.column(path[0])
    if kind == "IsNull":
        return f"{column.expression} is null"
    if kind == "IsNotNull":
        return f"{column.expression} is not null"
    value = given.value  # type: ignore[attr-defined]
    if kind == "In":
        return _membership(column, value)
    if kind in _COMPARISONS:
        # Spark orders text by its bytes; a collation of the database may not.
        order = ' collate "C"' if column.type in _TEXTS else ""
        return f"{column.expression}{order} {_COMPARISONS[kind]} {literal(column, value)}"
    if kind in _STRINGS and column.type in _TEXTS and value is not None:
        return _STRINGS[kind].format(column=column.expression, value=literal(column, value))
    raise Untranslatable


def _membership(column: Column, values: Iterable[Any]) -> str:
    written = [literal(column, value) for value in values]
    if not written:  # Spark and SQL differ on NULL in an empty list
        raise Untranslatable
    return f"{column.expression} in ({', '.join(written)})"


def literal(column: Column, value: Any) -> str:
    """A value as SQL, of the type that is compared with this column."""
    if value is None:
        return "null"
    kind = column.type
    if kind == "boolean" and isinstance(value, bool):
        return "true" if value else "false"
    if kind in _INTEGERS and isinstance(value, int) and not isinstance(value, bool):
        if _SMALLEST <= value <= _LARGEST:
            return f"'{value}'::bigint"
    elif kind == "numeric" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{quoted(_number(float(value)))}::double precision"
    elif kind == "timestamptz" and isinstance(value, datetime) and value.tzinfo is not None:
        return f"{quoted(value.isoformat())}::timestamptz"
    elif kind == "bytea" and isinstance(value, (bytes, bytearray)):
        return f"decode('{bytes(value).hex()}', 'hex')"
    elif kind in _TEXTS and isinstance(value, str):
        return f"{quoted(value)}::text"
    raise Untranslatable


def quoted(text: str) -> str:
    """A string literal that no content can end, with each value of `standard_conforming_strings`."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Untranslatable  # PostgreSQL has no such text
    doubled = text.replace("'", "''")
    if "\\" not in doubled:
        return f"'{doubled}'"
    return " E'" + doubled.replace("\\", "\\\\") + "'"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
