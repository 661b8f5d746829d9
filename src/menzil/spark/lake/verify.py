"""Does a lake hold what its manifests say, and what the database has?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from menzil.spark.lake import schema
from menzil.spark.lake.compare import archive_problems, event_problems
from menzil.spark.lake.fingerprint import Fingerprint, of_files
from menzil.spark.lake.load import load
from menzil.spark.lake.manifest import File
from menzil.spark.lake.read import frame_of
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.state import Table
from menzil.spark.lake.storage import LocalStorage, Storage, open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class VerifyReport:
    """How much was looked at, and each problem as a sentence."""

    files: int
    rows: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there is none."""
        return not self.problems


def verify(lake: str | os.PathLike[str], dsn: str | None = None, *, spark: SparkSession | None = None) -> VerifyReport:
    """Compare files with manifests: that they are there, their sizes and numbers of rows; with Spark, every value.

    With a dsn, months and lines of the event log that are still in the database are compared with it too.
    """
    storage = open_storage(lake, spark)
    state = load(storage, checkpoints=False)
    problems = [] if load(storage).encode() == state.encode() else ["A checkpoint says other than the manifests."]
    for name, table in state.tables.items():
        files = list(table.files.values())
        problems += file_problems(storage, files)
        problems += _sums(table, name)
    if spark is not None and not problems:
        for name, table in state.tables.items():
            problems += content_problems(spark, storage, table, list(table.files.values()), name)
    if dsn is not None:
        problems += archive_problems(state.messages, dsn)
        if spark is not None and not problems:
            problems += event_problems(spark, storage, state.events, dsn)
    rows = sum(file.fingerprint.rows for file in state.messages.files.values())
    return VerifyReport(sum(len(table.files) for table in state.tables.values()), rows, tuple(problems))


def file_problems(storage: Storage, files: Sequence[File]) -> list[str]:
    """Missing, of another size, or not Parquet with that many rows. The last only where no JVM is needed to see it."""
    problems = []
    for file in files:
        size = storage.size(file.path)
        if size is None:
            problems.append(f"{file.path} is missing.")
        elif size != file.size:
            problems.append(f"{file.path} has {size:,} bytes, not {file.size:,}.")
        elif isinstance(storage, LocalStorage):
            rows = _rows(f"{storage.root}/{file.path}")
            if rows != file.fingerprint.rows:
                problems.append(f"{file.path} has {rows} rows, not {file.fingerprint.rows}.")
    return problems


def _rows(path: str) -> int | None:
    import pyarrow
    import pyarrow.parquet

    try:
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    except (pyarrow.ArrowException, OSError):
        return None


def content_problems(
    spark: SparkSession, storage: Storage, table: Table, files: Sequence[File], name: str = MESSAGES
) -> list[str]:
    """Files whose rows are not those that were published. Reads all of them."""
    if not files:
        return []
    depth = 5 if name == MESSAGES else 4
    try:
        found = of_files(frame_of(spark, storage, files, schema.union(table.schemas, name), name), depth, name)
    except Exception as error:
        from menzil.spark.session import explain

        return [f"The files cannot be read: {explain(error).message}"]
    wrong = [file.path for file in files if found.get(file.path, Fingerprint()) != file.fingerprint]
    return [f"{path} holds other rows than were published." for path in wrong]


def _sums(table: Table, name: str) -> list[str]:
    """Compactions move rows between files; together they hold what was exported."""
    if name == EVENTS:
        exported = Fingerprint.total(each.fingerprint for each in table.slices)
        whole = Fingerprint.total(file.fingerprint for file in table.files.values())
        return [] if whole == exported else ["The files of the event log do not add up to what was exported."]
    problems = []
    for month in sorted({each.month for each in table.slices}):
        exported = Fingerprint.total(each.fingerprint for each in table.slices_of(month))
        if Fingerprint.total(file.fingerprint for file in table.of_month(month)) != exported:
            problems.append(f"The files of {month} do not add up to what was exported.")
    return problems
