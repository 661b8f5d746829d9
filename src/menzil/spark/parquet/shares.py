"""Work that is divided before Spark sees it: one task for each share.

The shares travel with the function. As rows of a DataFrame made from a list they would pass through another Python
process first, in every job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from menzil.spark.frozen import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Row, SparkSession

Share = TypeVar("Share")

#: Tasks where Spark does not say how many it runs at once.
UNKNOWN = 4


def parallel(spark: SparkSession) -> int:
    """How many tasks run at once. Driver."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context
        return UNKNOWN


def divided(
    spark: SparkSession, shares: Sequence[Share], work: Callable[[Share], Iterator[pa.RecordBatch]], ddl: str
) -> list[Row]:
    """What the tasks return. Driver."""
    held = list(shares)

    def run(batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        freeze_modules()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(held[number])

    return spark.range(0, len(held), 1, len(held)).mapInArrow(run, ddl).collect() if held else []
