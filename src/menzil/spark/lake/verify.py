"""Does a lake hold what its manifests say, and what the database has?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from menzil.ops import lake as ops
from menzil.ops.run import run
from menzil.spark.lake import layout, schema
from menzil.spark.lake.fingerprint import Fingerprint, of_files
from menzil.spark.lake.manifest import File, Slice, State
from menzil.spark.lake.publish import load
from menzil.spark.lake.read import frame_of
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

    With a dsn the months that are still in the database are compared with it too.
    """
    storage = open_storage(lake, spark)
    state = load(storage)
    problems = file_problems(storage, list(state.files.values()))
    problems += _sums(state)
    if spark is not None and not problems:
        problems += content_problems(spark, storage, state, list(state.files.values()))
    if dsn is not None:
        problems += _archive_problems(state, dsn)
    rows = sum(file.fingerprint.rows for file in state.files.values())
    return VerifyReport(len(state.files), rows, tuple(problems))


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


def content_problems(spark: SparkSession, storage: Storage, state: State, files: Sequence[File]) -> list[str]:
    """Files whose rows are not those that were published. Reads all of them."""
    if not files:
        return []
    try:
        found = of_files(frame_of(spark, storage, files, schema.union(state.schemas)), depth=5)
    except Exception as error:
        from menzil.spark.session import explain

        return [f"The files cannot be read: {explain(error).message}"]
    wrong = [file.path for file in files if found.get(file.path, Fingerprint()) != file.fingerprint]
    return [f"{path} holds other rows than were published." for path in wrong]


def _sums(state: State) -> list[str]:
    """Compactions move rows between files; together they hold what was exported."""
    problems = []
    for month in sorted({each.month for each in state.slices}):
        exported = Fingerprint.total(each.fingerprint for each in state.slices if each.month == month)
        if Fingerprint.total(file.fingerprint for file in state.of_month(month)) != exported:
            problems.append(f"The files of {month} do not add up to what was exported.")
    return problems


def _archive_problems(state: State, dsn: str) -> list[str]:
    problems = []
    with psycopg.connect(dsn, autocommit=True, application_name="menzil lake verify") as conn:
        for month in sorted({each.month for each in state.slices}):
            slices = [each for each in state.slices if each.month == month]
            until = str(state.watermark(month))
            there = run(conn, ops.archive_fingerprint(layout.month_start(month), None, until))
            if still_there(slices, Fingerprint.of_archive(there)) is None:
                problems.append(f"The database has other messages of {month} than were exported.")
    return problems


def still_there(slices: Sequence[Slice], archive: Fingerprint) -> list[Slice] | None:
    """The slices that make up what the database has; None when none do.

    A month that was dropped and made again has only the later ones. Their tries may have been cleaned up.
    """
    for first in range(len(slices) + 1):
        rest = Fingerprint.total(each.fingerprint for each in slices[first:])
        if (rest.rows, rest.sum, rest.xor) == (archive.rows, archive.sum, archive.xor):
            return list(slices[first:])
    return None
