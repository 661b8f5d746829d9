"""Write rows to the place of work, read the files back, and prepare the step that publishes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from menzil.spark.lake import layout
from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.lake.fingerprint import Fingerprint, of_files
from menzil.spark.lake.manifest import File, Manifest
from menzil.spark.lake.publish import prepare
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Rows of a file, and bytes of a row group before compression: what one task keeps in memory.
ROWS = 1_000_000
ROW_GROUP = 32 << 20

_WRITING = {
    # Times as the 64-bit microseconds that every reader knows; Spark's own default is a type of its own.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Without it a rebalance only shuffles, and every partition writes a file for every endpoint.
    "spark.sql.adaptive.enabled": "true",
}

#: By what the files of a step lie in directories: messages of one month, lines of the event log of all.
_BY = {MESSAGES: "endpoint", EVENTS: "label"}


def write(storage: Storage, frame: DataFrame, place: str, table: str = MESSAGES) -> None:
    """Spark writes the rows below `place`, a directory per endpoint. Rows of one endpoint lie together and in order.

    The rebalance gathers the rows of an endpoint and splits what gets too large, so that neither a thousand small
    endpoints nor one large one makes a bad set of files.
    """
    by = _BY[table]
    with _set(frame.sparkSession, _WRITING):
        (
            frame.hint("rebalance", by)
            .sortWithinPartitions(by, "created_at", "id")
            .write.partitionBy(by)
            .option("compression", "zstd")
            .option("parquet.block.size", ROW_GROUP)
            .option("maxRecordsPerFile", ROWS)
            .parquet(f"{storage.root}/{place}/rows")
        )


@contextmanager
def _set(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Settings of a session that is not ours alone, for the time of one write."""
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def examine(
    spark: SparkSession, storage: Storage, place: str, month: str | None, columns: dict[str, str], table: str
) -> tuple[list[str], list[File]]:
    """Read back what lies there: the paths as written, and the files as they will be published."""
    written = [found for found in storage.list(f"{place}/rows") if found.path.endswith(".parquet")]
    if not written:
        return [], []
    rows = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    fingerprints = of_files(spark.read.schema(rows).parquet(f"{storage.root}/{place}/rows"), 2, table)
    sources, files = [], []
    for number, found in enumerate(written):
        directory, name = found.path.split("/")[-2:]
        value = directory.removeprefix(f"{_BY[table]}=")
        label, endpoint = (month or "", value) if table == MESSAGES else (value, None)
        path = f"{layout.partition(label, endpoint)}/{layout.file_name(place, label, number)}"
        sources.append(found.path)
        files.append(File(path, label, endpoint, found.size, fingerprints.get(f"{directory}/{name}", Fingerprint())))
    return sources, files


def ready(spark: SparkSession, storage: Storage, place: str, step: Manifest, expected: Fingerprint) -> list[File]:
    """Verify what was written against what it must be, and leave the note: the step with these files.

    Nothing is prepared that differs.
    """
    sources, files = examine(spark, storage, place, step.month, step.columns, step.table)
    found = Fingerprint.total(file.fingerprint for file in files)
    if found != expected:
        storage.remove(place)
        raise LakeDamagedError(
            f"The files written for {step.step[2]} do not hold what they should: {difference(expected, found)}.",
            hint="nothing was published or dropped; run it again, and if it stays so, look for a failing disk",
        )
    prepare(storage, place, replace(step, files=tuple(files)), sources)
    return files


def difference(expected: Fingerprint, found: Fingerprint) -> str:
    """What differs, the first of what people understand."""
    names = [name for name in vars(expected) if getattr(expected, name) != getattr(found, name)]
    name = names[0] if names else "nothing"
    return f"{name} is {getattr(found, name, None)}, not {getattr(expected, name, None)}"
