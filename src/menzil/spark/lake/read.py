"""Read a lake: exactly the files of a snapshot, and no other file of the folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression

from menzil.model.errors import UsageError
from menzil.spark.lake import layout, schema, where
from menzil.spark.lake.place import file_system, inside, local, shown
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.table import Lake, open_lake
from menzil.spark.parquet import read as parquet

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyspark.sql import DataFrame, SparkSession

#: Which state of a table: the id of a snapshot, the name of a tag, or a time. None is the newest.
Snapshot = int | str | datetime | None


#: Every page as it was written, of every file: whatever the session says of files that are gone or damaged.
_WHOLE = {
    "parquet.page.verify-checksum.enabled": "true",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
#: What Hadoop takes for a pattern in a path.
_PATTERN = re.compile(r"[\\\[\]{}*?]")


def files(
    lake: str | os.PathLike[str],
    dsn: str | None = None,
    *,
    table: str = MESSAGES,
    snapshot: Snapshot = None,
) -> list[str]:
    """The paths of all files that count, for anything that reads Parquet. `table` is messages or events."""
    if table not in schema.TABLES:
        raise UsageError(f"A lake has no table {table}.", hint=f"it has {MESSAGES} and {EVENTS}")
    found = open_lake(lake, dsn)
    return sorted(shown(file.file_path) for file in data_files(found, table, snapshot=snapshot))


def read(
    spark: SparkSession,
    lake: str | os.PathLike[str],
    dsn: str | None = None,
    *,
    months: Sequence[str] | None = None,
    channels: Sequence[str] | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    snapshot: Snapshot = None,
) -> DataFrame:
    """The messages of a lake, one row each. Driver: the metadata is read now, the files when Spark needs them.

    With a dsn the catalog of that database says what counts, else the hint in the lake. `months` ("2026-03"),
    `channels` and times of creation, from `start` to before `end`, choose rows; files without them are not opened.
    `snapshot` is a state of before: an id, a tag or a time.
    """
    from pyspark.sql import functions as F

    _demand(months, channels, start, end)
    found = open_lake(lake, dsn, spark=spark)
    chosen = data_files(found, MESSAGES, _condition(months, channels, start, end), snapshot)
    frame = frame_of(spark, found, [file.file_path for file in chosen], columns_of(found, MESSAGES))
    if months is not None:
        spans = [(layout.month_start(month), layout.month_end(month)) for month in months]
        inside_months = F.lit(False)
        for first, after in spans:
            inside_months |= (F.col("created_at") >= F.lit(first)) & (F.col("created_at") < F.lit(after))
        frame = frame.where(inside_months)
    if channels is not None:
        frame = frame.where(F.col("channel").isin(list(channels)))
    if start is not None:
        frame = frame.where(F.col("created_at") >= F.lit(start.astimezone(UTC)))
    return frame if end is None else frame.where(F.col("created_at") < F.lit(end.astimezone(UTC)))


def events(
    spark: SparkSession, lake: str | os.PathLike[str], dsn: str | None = None, *, snapshot: Snapshot = None
) -> DataFrame | None:
    """The event log of a lake: the columns of menzil.event_log. None when no export has brought it there. Driver."""
    found = open_lake(lake, dsn, spark=spark)
    if not found.memory(EVENTS).labels:
        return None
    paths = [file.file_path for file in data_files(found, EVENTS, snapshot=snapshot)]
    return frame_of(spark, found, paths, columns_of(found, EVENTS))


def columns_of(lake: Lake, name: str) -> dict[str, str]:
    """The columns of a table, in Spark's words; those it will have when it is not there yet."""
    table = lake.table(name)
    return dict(schema.TABLES[name]) if table is None else schema.spark_columns(table.schema())


def _demand(
    months: Sequence[str] | None, channels: Sequence[str] | None, start: datetime | None, end: datetime | None
) -> None:
    """Refuse what would choose no rows, or others than were meant, without a word."""
    for name, given in (("months", months), ("channels", channels)):
        if isinstance(given, str):
            raise UsageError(f"{name} is one text, {given!r}.", hint=f"give a list: {name}=[{given!r}]")
    for month in months or ():
        layout.demand_month(month)
    for name, at in (("start", start), ("end", end)):
        if at is not None and at.tzinfo is None:
            raise UsageError(f"{name} has no time zone.", hint="use datetime.now(timezone.utc)")


def _condition(
    months: Sequence[str] | None, channels: Sequence[str] | None, start: datetime | None, end: datetime | None
) -> BooleanExpression:
    whole = where.created(start, end)
    if months is not None:
        whole = And(whole, where.in_months(months))
    return whole if channels is None else And(whole, where.one_of("channel", channels))


def data_files(
    lake: Lake, name: str, condition: BooleanExpression | None = None, snapshot: Snapshot = None
) -> list[DataFile]:
    """The files of a state of a table that may have rows which meet a condition, in order of their paths."""
    table = lake.table(name)
    if table is None or (table.metadata.current_snapshot_id is None and snapshot is None):
        return []
    scan = table.scan(row_filter=condition or AlwaysTrue(), snapshot_id=_number(table, snapshot))
    return sorted((task.file for task in scan.plan_files()), key=lambda file: file.file_path)


def of_month(lake: Lake, name: str, month: str, snapshot: Snapshot = None) -> list[DataFile]:
    """The files of a month."""
    return data_files(lake, name, _condition([month], None, None, None), snapshot)


def month_of(file: DataFile) -> str:
    """The month whose rows a file has."""
    return layout.month_of(file.partition[0])


def _number(table: Any, snapshot: Snapshot) -> int | None:
    if snapshot is None:
        return None
    if isinstance(snapshot, int):
        found = table.snapshot_by_id(snapshot)  # a scan of one that is not there has no files, and says nothing
    elif isinstance(snapshot, datetime):
        if snapshot.tzinfo is None:
            raise UsageError("The time of a snapshot has no time zone.", hint="use datetime.now(timezone.utc)")
        found = table.snapshot_as_of_timestamp(int(snapshot.timestamp() * 1000))
    else:
        found = table.snapshot_by_name(snapshot)
    if found is None:
        named = ", ".join(sorted(table.metadata.refs)) or "none"
        raise UsageError(f"The lake has no snapshot {snapshot}.", hint=f"its tags and branches: {named}")
    return int(found.snapshot_id)


def frame_of(spark: SparkSession, lake: Lake, paths: Sequence[str], columns: dict[str, str]) -> DataFrame:
    """Those files. A column that a file does not have is NULL there."""
    ddl = schema.ddl(columns)
    if not paths:
        return spark.createDataFrame([], ddl)
    if local(paths[0]) is not None or paths[0].startswith(("hdfs://", "viewfs://")):
        reader = spark.read.schema(ddl).options(**_WHOLE)
        return reader.parquet(*[_PATTERN.sub(r"\\\g<0>", path) for path in sorted(paths)])
    # What pip brings reaches no object store in Java: tasks read with pyarrow.
    task = parquet.task(file_system(lake.root, lake.options), schema.arrow(columns))
    listed = spark.createDataFrame([(inside(path),) for path in sorted(paths)], "path string")
    return listed.repartition(min(len(paths), 200)).mapInArrow(task, ddl)
