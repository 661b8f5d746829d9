"""Python functions over Arrow batches as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas import functions

# Its stubs ask for a functionType, which Spark itself reads off the annotations. PySpark 4.0 has no such functions.
_make: Any = getattr(functions, "arrow_udf", None)


def _once(udf: Any) -> Any:
    """Keep Spark from asking twice: a condition on what a UDF answers would be moved below it, with a copy of it."""
    return udf.asNondeterministic()


def batch_udf(function: Callable[..., pa.Array], kind: str) -> Any:
    """A column made of others, a batch at a time. The function runs in the tasks."""

    if _make is None:
        return _once(_of_series(function, kind))

    def run(*arrays: pa.Array) -> pa.Array:
        return function(*arrays)

    run.__annotations__ = {"arrays": pa.Array, "return": pa.Array}
    return _once(_make(run, kind))


def pair_udf(function: Callable[[Iterator[tuple[pa.Array, pa.Array]]], Iterator[pa.Array]], kind: str) -> Any:
    """A column made of two others; the function sees all batches of a task, and may open something for them."""

    if _make is None:
        return _once(_of_pairs_of_series(function, kind))

    def run(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        yield from function(batches)

    run.__annotations__ = {"batches": Iterator[tuple[pa.Array, pa.Array]], "return": Iterator[pa.Array]}
    return _once(_make(run, kind))


def _of_series(function: Callable[..., pa.Array], kind: str) -> Any:
    """The same for PySpark 4.0, by way of pandas. All our columns are texts, which pandas keeps as they are."""
    import pandas as pd

    def run(*given: pd.Series) -> pd.Series:
        return pd.Series(function(*[_array(each) for each in given]).to_pylist(), dtype=object)

    run.__annotations__ = {"given": pd.Series, "return": pd.Series}
    return functions.pandas_udf(run, kind)  # type: ignore[call-overload]


def _of_pairs_of_series(
    function: Callable[[Iterator[tuple[pa.Array, pa.Array]]], Iterator[pa.Array]], kind: str
) -> Any:
    import pandas as pd

    def run(batches: Iterator[tuple[pd.Series, pd.Series]]) -> Iterator[pd.Series]:
        for found in function((_array(one), _array(two)) for one, two in batches):
            yield pd.Series(found.to_pylist(), dtype=object)

    run.__annotations__ = {"batches": Iterator[tuple[pd.Series, pd.Series]], "return": Iterator[pd.Series]}
    return functions.pandas_udf(run, kind)  # type: ignore[call-overload]


def _array(series: Any) -> pa.Array:
    return pa.array(series.tolist(), pa.string())
