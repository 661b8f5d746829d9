"""Rows in one order across all partitions, each with its place, without bringing them together anywhere.

Cut the rows into ranges by a sample of their keys, count each range, send each range to the partition of its number and
sort it there: the place of a row is the number of rows in the ranges before it plus its place in its own. The sample
only decides how even the ranges are; the places are exact in any case.
"""

from __future__ import annotations

from itertools import accumulate

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

#: Rows of one range, about; and how many ranges there are at most.
ROWS = 20_000
MOST = 256

#: Sampled keys per range: enough that the largest range is rarely twice the mean.
KEYS = 50

# monotonically_increasing_id is the number of the partition, then 33 bits for the row in it.
_ROW_BITS = (1 << 33) - 1

Key = tuple[int, int]


def in_order(frame: DataFrame, total: int, *, rows: int = ROWS) -> DataFrame:
    """The frame by created_at and id, with `_place` from 1. Driver; reads the two keys of every row twice.

    `total` is about how many rows there are. Partitions of the result follow each other, and so do the rows in them.
    """
    ranges = max(1, min(MOST, total // rows))
    keyed = frame.withColumn("_range", _range_of(_bounds(frame, total, ranges)))
    counts = {row["_range"]: row["count"] for row in keyed.groupBy("_range").count().collect()}
    before = list(accumulate((counts.get(number, 0) for number in range(ranges)), initial=0))[:ranges]
    start = F.get(F.array(*[F.lit(number).cast("bigint") for number in before]), F.col("_range"))
    if not hasattr(DataFrame, "repartitionById"):
        return _numbered(keyed, start, ranges)
    placed = keyed.repartitionById(ranges, F.col("_range")).sortWithinPartitions("created_at", "id")
    row = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW_BITS))
    return placed.withColumn("_place", start + row + 1).drop("_range")


def _numbered(keyed: DataFrame, start: Column, ranges: int) -> DataFrame:
    """The same on PySpark 4.0, which cannot send a row to a partition by its number: one more exchange of all rows."""
    number = F.row_number().over(Window.partitionBy("_range").orderBy("created_at", "id"))
    placed = keyed.withColumn("_place", start + number).drop("_range")
    return placed.repartitionByRange(ranges, "_place").sortWithinPartitions("_place")


def _bounds(frame: DataFrame, total: int, ranges: int) -> list[Key]:
    """The first keys of all ranges but the first."""
    if ranges == 1:
        return []
    share = min(1.0, KEYS * ranges / total)
    sample = frame.select(F.unix_micros("created_at"), "id").sample(fraction=share, seed=1).collect()
    keys = sorted((row[0], row[1]) for row in sample)
    step = max(1, len(keys) // ranges)
    return keys[step::step][: ranges - 1]


def _range_of(bounds: list[Key], first: int = 0) -> Column:
    """The number of the range of a row: a balanced tree of comparisons, which Spark compiles."""
    if not bounds:
        return F.lit(first)
    middle = len(bounds) // 2
    micros, number = bounds[middle]
    at = F.unix_micros("created_at")
    below = (at < micros) | ((at == micros) & (F.col("id") < number))
    return F.when(below, _range_of(bounds[:middle], first)).otherwise(
        _range_of(bounds[middle + 1 :], first + middle + 1)
    )
