"""Columns made of payloads: the top-level fields that the JSON Schema of an event type names, typed.

The payload stays as it is and is what is proved; these columns only spare readers the parsing. A value that is not of
the type of its column is NULL there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from menzil.spark.source.relations import in_ddl

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Before the name of the field.
PREFIX = "p_"

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_TYPES = {"string": "string", "integer": "bigint", "number": "double", "boolean": "boolean"}

#: Of a double, the largest that is a number; of a time, the years 1 to 9999 in microseconds: Python reads no others.
_FINITE = "1.7976931348623157E308D"
_YEARS = "-62135596800000000 and 253402300799999999"

_DOUBLE = "try_variant_get({piece}, '$', 'double')"
_TIME = "try_cast(upper(try_variant_get({piece}, '$', 'string')) as timestamp_ltz)"
_NUMBER = "(schema_of_variant({piece}) = 'BIGINT' or schema_of_variant({piece}) like 'DECIMAL%')"
#: A value of each type, from the variant {piece}; NULL for a value of another type.
_VALUES = {
    "string": "case when schema_of_variant({piece}) = 'STRING' then try_variant_get({piece}, '$', 'string') end",
    "boolean": "case when schema_of_variant({piece}) = 'BOOLEAN' then try_variant_get({piece}, '$', 'boolean') end",
    # 5.0 is an integer, as JSON Schema has it.
    "bigint": f"case when {_NUMBER} then case when try_variant_get({{piece}}, '$', 'decimal(38,18)') % 1 = 0 "
    "then try_cast(try_variant_get({piece}, '$', 'decimal(38,18)') as bigint) end end",
    "double": f"case when ({_NUMBER} or schema_of_variant({{piece}}) = 'DOUBLE') "
    f"and abs({_DOUBLE}) <= {_FINITE} then {_DOUBLE} end",
    "timestamp": "case when schema_of_variant({piece}) = 'STRING' and try_variant_get({piece}, '$', 'string') rlike "
    r"'^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ][0-9:.]+([Zz]|[+-][0-9]{{2}}:[0-9]{{2}})$' "
    f"and unix_micros({_TIME}) between {_YEARS} then {_TIME} end",
}


@dataclass(frozen=True)
class Promoted:
    """A field of an event type, and the column its values go to."""

    event_type: str
    field: str
    column: str
    type: str

    @property
    def key(self) -> str:
        """Of one promotion."""
        return f"{self.event_type}\x1f{self.field}"


def promoted(event_type: str, schema: Any, known: Iterable[Promoted]) -> list[Promoted]:
    """The fields of this schema that get a column, beside those that have one.

    Fields of one name share a column, and its type is that of the first: columns never change. Names that are not
    letters, digits and underscores, or differ from another in case only, are left out, and so is what is not scalar.
    """
    columns: dict[str, Promoted] = {}
    done = set()
    for each in known:
        columns.setdefault(each.column.lower(), each)
        if each.event_type == event_type:
            done.add(each.field)
    found = []
    properties = schema.get("properties") if isinstance(schema, dict) else None
    alike = Counter(field.lower() for field in properties or {})
    for field, rule in (properties or {}).items():
        kind, column = _type(rule), f"{PREFIX}{field}"
        if kind is None or field in done or alike[field.lower()] > 1 or not _PLAIN.fullmatch(field):
            continue
        holder = columns.get(column.lower())
        if holder is not None and holder.field != field:
            continue
        new = Promoted(event_type, field, column, kind if holder is None else holder.type)
        columns.setdefault(column.lower(), new)
        found.append(new)
    return found


def without_column(event_type: str, schema: Any, promotions: Iterable[Promoted]) -> list[str]:
    """The fields of this schema without a column: not scalar, of several types, or of a name that cannot be one."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    done = {each.field for each in promotions if each.event_type == event_type}
    return [field for field in properties or {} if field not in done]


def _type(rule: Any) -> str | None:
    if not isinstance(rule, dict):
        return None
    given = rule.get("type")
    kinds = [kind for kind in (given if isinstance(given, list) else [given]) if kind != "null"]
    if len(kinds) != 1 or not isinstance(kinds[0], str):
        return None
    return "timestamp" if kinds[0] == "string" and rule.get("format") == "date-time" else _TYPES.get(kinds[0])


def columns_of(promotions: Iterable[Promoted]) -> dict[str, str]:
    """Name and type of every column."""
    return {each.column: each.type for each in promotions}


def values(promotions: Sequence[Promoted]) -> list[Column]:
    """The columns, for rows with payload and metadata as texts."""
    from pyspark.sql import functions as F

    found = []
    for column, kind in columns_of(promotions).items():
        types = sorted({each.event_type for each in promotions if each.column == column})
        field = next(each.field for each in promotions if each.column == column)
        piece = f"try_variant_get(try_parse_json(payload), '$.{field}', 'variant')"
        mine = F.get_json_object("metadata", "$.event_type").isin(types)
        found.append(F.when(mine, F.expr(_VALUES[kind].format(piece=piece))).cast(in_ddl(kind)).alias(column))
    return found
