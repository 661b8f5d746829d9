"""Rows become files of a table, which are read back before they count. Driver; tasks do the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from menzil.ops.lake import ArchiveCensus
from menzil.spark.lake import commit
from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.lake.fingerprint import MONTH, ROW_FIELDS, TRY_FIELDS, Fingerprint, from_task, of_files
from menzil.spark.lake.place import file_system, inside
from menzil.spark.lake.schema import BOUNDED, EVENTS
from menzil.spark.parquet import write as parquet
from menzil.spark.parquet.write import KEY, Place, Written

if TYPE_CHECKING:
    from pyiceberg.table import Transaction
    from pyspark.sql import DataFrame, SparkSession

    from menzil.spark.lake.table import Lake

# Without it a rebalance only shuffles, and every partition writes a file for every channel.
_WRITING = {"spark.sql.adaptive.enabled": "true"}


def write(
    lake: Lake, name: str, tx: Transaction, frame: DataFrame, month: str | None, channels: Sequence[str] = ()
) -> list[Written]:
    """Tasks write the rows to the final place. The rows of a part of the table lie together and in order.

    The rebalance gathers the rows of a channel and splits what gets too large, so that neither a thousand small
    channels nor one large one makes a bad set of files. `channels` are all that may come, where their hash parts files.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    shape = schema_to_pyarrow(commit.schema_of(tx))
    keyed = _keyed(frame, name, month, channels if commit.is_bucketed(tx) else None)
    task = parquet.task(place_of(lake, name, month or EVENTS, shape))
    with _set(frame.sparkSession, _WRITING):
        ordered = keyed.hint("rebalance", KEY).sortWithinPartitions(KEY, "created_at", "id")
        return parquet.lines(bytes(row.line) for row in ordered.mapInArrow(task, "line binary").collect())


def place_of(lake: Lake, name: str, label: str, shape: Any) -> Place:
    """Where files of a month, or of the event log, go."""
    path = inside(f"{lake.root}/{name}/data/{label}")
    hashed = (ROW_FIELDS[name], TRY_FIELDS[name])
    return Place(file_system(lake.root, lake.options), path, shape, BOUNDED[name], hashed)


def _keyed(frame: DataFrame, name: str, month: str | None, hashed: Sequence[str] | None) -> DataFrame:
    from pyspark.sql import functions as F

    label = F.lit(month) if month is not None else F.expr(MONTH)
    if name == EVENTS:
        return frame.withColumn(KEY, label)
    if hashed is None:
        return frame.withColumn(KEY, F.concat_ws("/", label, "channel"))
    parts = frame.sparkSession.createDataFrame(
        [(channel, str(commit.bucket(channel))) for channel in hashed], "channel string, part string"
    )
    return frame.join(F.broadcast(parts), "channel").withColumn(KEY, F.concat_ws("/", label, "part")).drop("part")


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session that is not ours alone, for the time of one write."""
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def prove(
    spark: SparkSession, lake: Lake, name: str, written: Sequence[Written], expected: Fingerprint, label: str
) -> None:
    """Read back what was written and compare it with what it must be. What differs is removed, and nothing counts."""
    files = file_system(lake.root, lake.options)
    found = Fingerprint.total(of_files(spark, files, [file.path for file in written], name).values())
    if found != expected:
        _refuse(lake, written, label, difference(expected, found))


def must_hold(lake: Lake, written: Sequence[Written], expected: Fingerprint, label: str) -> None:
    """The same of files that their tasks have read back."""
    found = Fingerprint.total(from_task(file.found) for file in written if file.found is not None)
    if found != expected or any(file.found is None for file in written):
        _refuse(lake, written, label, difference(expected, found))


def proved(lake: Lake, written: Sequence[Written], census: Sequence[ArchiveCensus], label: str) -> Fingerprint:
    """The fingerprint of messages that tasks have read, written and read back, each file by itself.

    The database hashed every row as it was read. That all rows were read, and none twice, says its census.
    """
    for file in written:
        assert file.said is not None
        assert file.found is not None
        said, found = from_task(file.said), from_task(file.found)
        if said != found:
            _refuse(lake, written, label, f"in {file.path} {difference(said, found)}")
    counts = [file.census for file in written if file.census is not None]
    read = [sum(each[at] for each in counts) for at in range(4)]
    wanted = [0, 0, 0, 0]
    for about in census:
        numbers = (about.row_count, about.id_sum, about.failed_attempt_count, about.failed_attempt_id_sum)
        wanted = [one + other for one, other in zip(wanted, numbers, strict=True)]
    names = ("the number of messages", "the sum of ids", "the number of failed tries", "the sum of ids of failed tries")
    for name, seen, should in zip(names, read, wanted, strict=True):
        if seen != should:
            _refuse(lake, written, label, f"{name} is {seen:,}, not {should:,}")
    whole = Fingerprint.total(from_task(file.said) for file in written if file.said is not None)
    bounds = Fingerprint.total(Fingerprint.of_census(each) for each in census)
    for name in ("min_id", "max_id", "min_created_at", "max_created_at"):
        if getattr(whole, name) != getattr(bounds, name):
            _refuse(lake, written, label, f"{name} is {getattr(whole, name)}, not {getattr(bounds, name)}")
    return whole


def _refuse(lake: Lake, written: Sequence[Written], label: str, what: str) -> NoReturn:
    remove(lake, written)
    raise LakeDamagedError(
        f"The files written for {label} do not hold what they should: {what}.",
        hint="nothing was committed or dropped; run it again, and if it stays so, look for a failing disk",
    )


def remove(lake: Lake, written: Sequence[Written]) -> None:
    """Files that no snapshot names, and that will never count. A killed process leaves them to the sweep."""
    files = file_system(lake.root, lake.options)
    for file in written:
        files.delete_file(file.path)


def difference(expected: Fingerprint, found: Fingerprint) -> str:
    """What differs, the first of what people understand."""
    names = [name for name in vars(expected) if getattr(expected, name) != getattr(found, name)]
    name = names[0] if names else "nothing"
    return f"{name} is {getattr(found, name, None)}, not {getattr(expected, name, None)}"
