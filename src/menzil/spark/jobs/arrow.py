"""Python functions over Arrow batches as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf

# Its stubs ask for a functionType, which Spark itself reads off the annotations.
_make: Any = arrow_udf


def _once(udf: Any) -> Any:
    """Keep Spark from asking twice: a condition on what a UDF answers would be moved below it, with a copy of it."""
    return udf.asNondeterministic()


def batch_udf(function: Callable[..., pa.Array], kind: str) -> Any:
    """A column made of others, a batch at a time. The function runs in the tasks."""

    def run(*arrays: pa.Array) -> pa.Array:
        return function(*arrays)

    run.__annotations__ = {"arrays": pa.Array, "return": pa.Array}
    return _once(_make(run, kind))


def pair_udf(function: Callable[[Iterator[tuple[pa.Array, pa.Array]]], Iterator[pa.Array]], kind: str) -> Any:
    """A column made of two others; the function sees all batches of a task, and may open something for them."""

    def run(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        yield from function(batches)

    run.__annotations__ = {"batches": Iterator[tuple[pa.Array, pa.Array]], "return": Iterator[pa.Array]}
    return _once(_make(run, kind))
