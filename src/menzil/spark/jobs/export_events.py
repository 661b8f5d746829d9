"""Lines of the event log go from PostgreSQL to files in one task, like messages: Spark only divides the work.

They are few beside the messages. Through the data source a run with ten new lines would wait for Spark's planner, which
asks four Python processes, and for three jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from menzil.spark.jobs import export_task as task
from menzil.spark.jobs.export_files import tasks
from menzil.spark.lake import commit
from menzil.spark.lake.cover import Part
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.schema import EVENTS
from menzil.spark.lake.write import place_of
from menzil.spark.parquet.shares import divided, parallel
from menzil.spark.parquet.write import Written, lines
from menzil.spark.source import partitions
from menzil.spark.source.filters import quoted

if TYPE_CHECKING:
    from pyiceberg.table import Transaction
    from pyspark.sql import SparkSession

    from menzil.spark.lake.table import Lake


def write_events(
    spark: SparkSession, dsn: str, lake: Lake, tx: Transaction, parts: Sequence[Part], expected: Fingerprint
) -> list[Written]:
    """Write the lines of these parts, of which the database said this; each file is read back. Driver."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    if expected.min_id is None or expected.max_id is None:
        return []
    place = place_of(lake, EVENTS, EVENTS, schema_to_pyarrow(commit.schema_of(tx)))
    count = tasks(expected.rows, 1, parallel(spark))
    pieces = list(partitions.of_key(task.EVENT_LOG, "id", expected.min_id, expected.max_id, count))
    work = task.events(dsn, place, [f"id between {expected.min_id} and {expected.max_id}", _inside(parts)])
    return lines(bytes(row.line) for row in divided(spark, pieces, work, "line binary"))


def _inside(parts: Sequence[Part]) -> str:
    """The condition for lines in these parts."""
    each = []
    for part in parts:
        mine = f"xid >= '{part.start}'::xid8 and xid < '{part.until}'::xid8"
        if part.created_from:
            mine += f" and created_at >= {quoted(part.created_from)}::timestamptz"
        if part.created_until:
            mine += f" and created_at < {quoted(part.created_until)}::timestamptz"
        each.append(f"({mine})")
    return " or ".join(each)
