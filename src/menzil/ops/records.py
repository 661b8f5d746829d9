"""Answers of several columns as plain records: what lists and pages are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from menzil.model import exact
from menzil.model.wire import Loads, json_loads, read_json, read_time, read_uuid
from menzil.ops.op import Rows

Record = dict[str, Any]


def _json(raw: bytes, loads: Loads = json_loads) -> Any:
    try:
        return read_json(raw, loads)
    except RecursionError:  # jsonb may be nested deeper than Python can parse; a person still wants to see it
        return raw[1:].decode()


# Of the columns that travel undecoded, by the kind that is written behind their name.
_READERS: dict[str, Callable[[bytes], Any]] = {
    "time": read_time,
    "json": _json,
    "exact": partial(_json, loads=exact.loads),  # of strangers, whose numbers may have more digits than a float
    "uuid": read_uuid,
}


def records(columns: str) -> Callable[[Rows], list[Record]]:
    """Read rows as records; `columns` names them in order, as in "id name config:json created_at:time"."""
    named = [column.partition(":")[::2] for column in columns.split()]
    readers = [(name, _READERS[kind] if kind else None) for name, kind in named]

    def read(rows: Rows) -> list[Record]:
        return [
            {
                name: value if value is None or reader is None else reader(value)
                for (name, reader), value in zip(readers, row, strict=True)
            }
            for row in rows
        ]

    return read


def record(columns: str) -> Callable[[Rows], Record | None]:
    """Read the first row alone, or None when there is none."""
    read = records(columns)

    def first(rows: Rows) -> Record | None:
        return read(rows[:1])[0] if rows else None

    return first
