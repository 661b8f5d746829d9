"""Nested columns as JSON text; fields of a struct that are NULL are left out, as by to_json. Runs in a task."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import Array

Writer = Callable[[Any], str]


def json_text(column: Array) -> Array:
    """One text per value; NULL stays NULL."""
    import pyarrow as pa

    write = _writer(column.type)
    return pa.array([None if value is None else write(value) for value in column.to_pylist()], pa.string())


def _writer(kind: Any) -> Writer:
    """How values of an Arrow type are written."""
    import pyarrow.types as types

    if types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        return _struct([(field.name, quoted(field.name) + ":", _writer(field.type)) for field in fields])
    if types.is_map(kind):
        return _map(_or_null(_writer(kind.item_type)))
    if types.is_list(kind) or types.is_large_list(kind):
        each = _or_null(_writer(kind.value_type))
        return lambda values: "[" + ",".join([each(value) for value in values]) + "]"
    return _plain


def _struct(fields: list[tuple[str, str, Writer]]) -> Writer:
    def write(value: dict[str, Any]) -> str:
        there = [label + write(value[name]) for name, label, write in fields if value[name] is not None]
        return "{" + ",".join(there) + "}"

    return write


def _map(item: Writer) -> Writer:
    def write(pairs: list[tuple[Any, Any]]) -> str:
        there = [
            f"{quoted(key if isinstance(key, str) else _plain(key).strip(chr(34)))}:{item(value)}"
            for key, value in pairs
        ]
        return "{" + ",".join(there) + "}"

    return write


def _or_null(write: Writer) -> Writer:
    return lambda value: "null" if value is None else write(value)


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number of JSON")
        return repr(value)
    if isinstance(value, Decimal):  # with all its digits, which a float would lose
        return format(value, "f")
    if isinstance(value, datetime):
        return quoted((value.astimezone(UTC) if value.tzinfo else value).isoformat().replace("+00:00", "Z"))
    if isinstance(value, date):
        return quoted(value.isoformat())
    if isinstance(value, bytes):
        return quoted(base64.b64encode(value).decode())
    return str(value)
