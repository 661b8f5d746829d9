"""Messages whose bodies were erased in the database: what a lake still has of them is not sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.ops import feed, looking_report
from menzil.spark.lake import where
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.table import open_lake
from menzil.spark.source.door import ask

if TYPE_CHECKING:
    from menzil.spark.lake.table import Lake

_ERASED = "message.erased"
_SHAPE = pa.schema([("entity_id", pa.string()), ("created_at", pa.timestamp("us", "UTC"))])


def erased(spark: SparkSession, lake: str, dsn: str | None) -> DataFrame | None:
    """Each id that was erased, and when last (`_erased_at`); None when no log says so. Driver.

    The event log of the lake knows it, and that of the database as long as it is the one that exports to the lake:
    another one has other messages under the same ids.
    """
    found = open_lake(lake, dsn)
    told = _in_lake(found)
    if dsn is not None and _is_source(found, dsn):
        rows = ask(dsn, looking_report.events_named([_ERASED]))
        live = [{"entity_id": row["channel"], "created_at": row["created_at"]} for row in rows]
        told = pa.concat_tables([told, pa.Table.from_pylist(live, _SHAPE)])
    if not len(told):
        return None
    lines = spark.createDataFrame(told)
    return lines.groupBy(F.col("entity_id").cast("bigint").alias("id")).agg(F.max("created_at").alias("_erased_at"))


def _in_lake(lake: Lake) -> pa.Table:
    """Lines of the event log of the lake. Arrow finds the few without Spark, as a plan is looked at in a moment."""
    table = lake.table(EVENTS)
    if table is None or table.metadata.current_snapshot_id is None:
        return _SHAPE.empty_table()
    chosen = table.scan(where.one_of("event_type", [_ERASED]), selected_fields=("entity_id", "created_at"))
    return chosen.to_arrow().select(_SHAPE.names).cast(_SHAPE)


def _is_source(lake: Lake, dsn: str) -> bool:
    """Whether this is the server and database of the last export, whatever its timeline is."""
    source = lake.memory(MESSAGES).source
    return source is not None and source.rpartition("/")[0] == ask(dsn, feed.server())
