"""From the columns of any table to the columns of messages. Driver: builds expressions, reads nothing.

A column that has the name of a message option is that option. The body is the column that was named, else one called
payload (or content, for bytes), else an object of all columns that are left. A column given with `columns` is an option
and stays part of such an object: a receiver that needs messages in order by customer mostly needs the customer, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
)

from menzil.model.errors import UsageError
from menzil.spark.source.relations import in_ddl

#: What a message may be given beside its body, and as which type of Spark.
OPTIONS = {
    "endpoint": "string",
    "priority": "int",
    "ordering_key": "string",
    "idempotency_key": "string",
    "correlation_id": "string",
    "scheduled_at": "timestamp",
    "expires_at": "timestamp",
    "headers": "json",
    "metadata": "json",
}
BODIES = ("payload", "content")

#: What a value had to be, for the sentence about one that is not.
_MEANT = {"int": "a whole number", "timestamp": "a time", "string": "a text"}


def shape(
    frame: DataFrame,
    *,
    given: Mapping[str, str | None],
    payload: str | None = None,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, str] = OPTIONS,
) -> DataFrame:
    """The frame with the columns of messages, plus `_problem`: which value could not be read, or NULL.

    `given` has one value for all rows, over any column of that name; what it names is needed one way or the other.
    """
    named = {**{word: word for word in words if word in frame.columns}, **(columns or {})}
    _check(frame, given, payload, named, words)
    taken: dict[str, Column] = {}
    problems: list[Column] = []
    for word, source in named.items():
        taken[word], problem = _option(word, words[word], _quoted(source), frame.schema[source].dataType)
        if problem is not None:
            problems.append(problem)
    taken |= {word: F.lit(value) for word, value in given.items() if value is not None}
    taken |= _body(frame, payload, words)
    first = F.coalesce(*problems) if problems else F.lit(None).cast("string")
    return frame.select(*[column.alias(word) for word, column in taken.items()], first.alias("_problem"))


def _check(
    frame: DataFrame,
    given: Mapping[str, str | None],
    payload: str | None,
    named: Mapping[str, str],
    words: Mapping[str, str],
) -> None:
    hint = f"the columns are {', '.join(frame.columns)}"
    for word, source in named.items():
        if word not in words:
            raise UsageError(f"A message has no {word!r}.", hint=f"it has {', '.join(words)}")
        if source not in frame.columns:
            raise UsageError(f"There is no column {source!r} for {word}.", hint=hint)
    if payload is not None and payload not in frame.columns:
        raise UsageError(f"There is no column {payload!r} for the payload.", hint=hint)
    for word, value in given.items():
        if value is None and word not in named:
            what = word.replace("_", " ")
            raise UsageError(f"Which {what}?", hint=f"give one {what} for all rows, or have a column called {word}")


def _quoted(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _option(word: str, wanted: str, value: Column, kind: DataType) -> tuple[Column, Column | None]:
    """The column of an option, and the sentence about a value that does not fit."""
    if wanted == "json":
        return (F.to_json(value) if _is_nested(kind) else value.cast("string")), None
    if isinstance(kind, StringType) and wanted == "string":
        return value, None
    if isinstance(kind, TimestampType) and wanted == "timestamp":
        return value, None
    read = value.try_cast(in_ddl(wanted))
    return read, F.when(value.isNotNull() & read.isNull(), F.lit(f"The {word} is not {_MEANT[wanted]}."))


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, StructType | MapType | ArrayType | VariantType)


def _body(frame: DataFrame, payload: str | None, words: Mapping[str, str]) -> dict[str, Column]:
    if payload is None and "payload" not in frame.columns and "content" not in frame.columns:
        left = [name for name in frame.columns if name not in words]
        if not left:
            raise UsageError("No column is left for the payload.", hint="name one, or add the columns it is made of")
        return {"payload": F.to_json(F.struct(*[_quoted(name) for name in left]))}
    sources = [payload] if payload is not None else [name for name in BODIES if name in frame.columns]
    made = {}
    for source in sources:
        kind, value = frame.schema[source].dataType, _quoted(source)
        if isinstance(kind, BinaryType):
            made["content"] = value
        elif isinstance(kind, StringType):  # JSON as it was written, with every digit
            made["payload"] = value
        else:  # a number is JSON too; a table of plain values need not be wrapped by hand
            made["payload"] = F.to_json(value) if _is_nested(kind) else value.cast("string")
    return made
