"""Fewer fields for the driver to read: columns that are NULL almost everywhere travel together, as one NULL.

The driver takes a tenth of a microsecond for a field, a NULL included, and a message in the archive has a dozen columns
that most messages have no use for. A task looks at the first rows it will read; columns with nothing in them become one
array of texts, made only for rows that do have something. A wrong guess costs time; every value arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from menzil.spark.source.relations import Column

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import RecordBatch

#: Rows that are looked at.
SAMPLE = 1000
#: The one field of columns that travel together; no column is called so.
PACKED = "_packed"

#: The text of a value, and the Arrow type that reads it back exactly.
_TEXTS = {
    "text": ("{0}", "string"),
    "jsonb": ("{0}::text", "string"),
    "uuid": ("{0}::text", "string"),
    "xid8": ("{0}::text", "string"),
    "bigint": ("{0}::text", "int64"),
    "integer": ("{0}::text", "int32"),
    "smallint": ("{0}::text", "int16"),
    "timestamptz": ("(extract(epoch from {0}) * 1000000)::bigint::text", "timestamp"),
    "bytea": ("encode({0}, 'hex')", "bytes"),
}


@dataclass(frozen=True)
class Plan:
    """What to select of which columns, in the order of the schema, under the names that Spark has for them."""

    columns: Sequence[tuple[Column, str]]

    def probe(self, source: str, condition: str | None) -> str | None:
        """A query that counts what there is of each column that could travel with others; None for none."""
        asked = self._packable()
        if len(asked) < 2:
            return None
        counts = ", ".join(f'count("{column.name}")' for column in asked)
        names = ", ".join(f'"{column.name}"' for column in asked)
        where = f" where {condition}" if condition else ""
        return f"select array[{counts}]::text as counts from (select {names} from {source}{where} limit {SAMPLE}) s"

    def packed(self, counts: str) -> list[Column]:
        """The columns that travel together, when the probe said this."""
        numbers = counts.strip("{}").split(",")
        rare = [column for column, number in zip(self._packable(), numbers, strict=True) if number == "0"]
        return rare if len(rare) > 1 else []

    def projection(self, packed: Sequence[Column]) -> str:
        """The select list."""
        parts = [f'{column.expression} as "{name}"' for column, name in self.columns if column not in packed]
        if packed:
            names = ", ".join(f'"{column.name}"' for column in packed)
            texts = ", ".join(_TEXTS[column.type][0].format(f'"{column.name}"') for column in packed)
            parts.append(f'case when num_nonnulls({names}) > 0 then array[{texts}] end as "{PACKED}"')
        return ", ".join(parts)

    def share(self, packed: Sequence[Column]) -> float:
        """How much of the fields are left. Batches are cut by what is sent, and hold more when they are unpacked."""
        return 1 - (len(packed) - 1) / len(self.columns) if packed else 1.0

    def unpack(self, batches: Iterator[RecordBatch], packed: Sequence[Column]) -> Iterator[RecordBatch]:
        """The batches as if each column had travelled for itself."""
        if not packed:
            yield from batches
            return
        import pyarrow

        place = {column.name: number for number, column in enumerate(packed)}
        names = [name for _, name in self.columns]
        for batch in batches:
            together = batch.column(PACKED)
            arrays = [
                _values(together, place[column.name], column) if column.name in place else batch.column(name)
                for column, name in self.columns
            ]
            yield pyarrow.RecordBatch.from_arrays(arrays, names)

    def _packable(self) -> list[Column]:
        return [column for column, _ in self.columns if column.type in _TEXTS and column.sql is None]


def _values(together: pyarrow.Array, number: int, column: Column) -> pyarrow.Array:
    import pyarrow.compute

    kind = _TEXTS[column.type][1]
    if together.null_count == len(together):
        return _nulls(kind, len(together))
    texts = pyarrow.compute.list_element(together, number)
    if kind == "bytes":
        values = [None if text is None else bytes.fromhex(text) for text in texts.to_pylist()]
        return pyarrow.array(values, _arrow(kind))
    return texts.cast(pyarrow.int64()).cast(_arrow(kind)) if kind == "timestamp" else texts.cast(_arrow(kind))


def _nulls(kind: str, count: int) -> pyarrow.Array:
    """So many NULLs: the beginning of the longest array that was needed so far."""
    import pyarrow

    if kind not in _longest or len(_longest[kind]) < count:
        _longest[kind] = pyarrow.nulls(count, _arrow(kind))
    return _longest[kind].slice(0, count)


_longest: dict[str, pyarrow.Array] = {}


@cache
def _arrow(kind: str) -> Any:
    import pyarrow

    if kind == "timestamp":
        return pyarrow.timestamp("us", "UTC")
    return pyarrow.binary() if kind == "bytes" else getattr(pyarrow, kind)()
