"""Does a lake hold what was exported, and what the database has?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from menzil.spark.lake.compare import archive_problems, event_problems
from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.lake.fingerprint import Fingerprint, of_files
from menzil.spark.lake.memory import total
from menzil.spark.lake.place import file_system, inside, shown
from menzil.spark.lake.read import data_files, month_of
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.suspect import suspects
from menzil.spark.lake.table import Lake, demand, open_lake
from menzil.spark.lake.write import difference
from menzil.spark.parquet.read import damage

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyspark.sql import SparkSession

#: Files whose footers are read at the same time.
READERS = 8


@dataclass(frozen=True)
class VerifyReport:
    """How much was looked at, and each problem as a sentence."""

    files: int
    rows: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


def verify(
    lake: str | os.PathLike[str],
    dsn: str | None = None,
    *,
    spark: SparkSession | None = None,
    catalog: str | None = None,
) -> VerifyReport:
    """Compare files with what the table says of them: that they are there, sizes, rows; with Spark, every value.

    With a dsn, months and lines of the event log that are still in the database are compared with it too.
    """
    found = open_lake(lake, dsn, catalog=catalog, spark=spark)
    if dsn is not None:
        demand(found)
    problems: list[str] = []
    files = {name: data_files(found, name) for name in (MESSAGES, EVENTS)}
    for name, those in files.items():
        problems += file_problems(found, those)
        problems += _counts(found, name, those)
    if spark is not None and not problems:
        for name, those in files.items():
            problems += content_problems(spark, found, name, those)
    if dsn is not None:
        problems += archive_problems(found, dsn, spark)
        if spark is not None and not problems and found.memory(EVENTS).labels:
            problems += event_problems(spark, found, dsn)
    rows = sum(file.record_count for file in files[MESSAGES])
    return VerifyReport(sum(len(those) for those in files.values()), rows, tuple(problems))


def file_problems(lake: Lake, files: Sequence[DataFile], *, whole: bool = False) -> list[str]:
    """Missing, of another size, or not Parquet with that many rows; with `whole`, pages that are not as written."""
    system = file_system(lake.root, lake.options)

    def look(file: DataFile) -> str | None:
        return damage(system, inside(file.file_path), file.file_size_in_bytes, file.record_count, whole=whole)

    with ThreadPoolExecutor(READERS) as pool:
        told = list(pool.map(look, files))
    return [f"{shown(file.file_path)} {said}" for file, said in zip(files, told, strict=True) if said is not None]


def content_problems(spark: SparkSession, lake: Lake, name: str, files: Sequence[DataFile]) -> list[str]:
    """Months whose rows are not those that were exported, or the files in which they are damaged. Reads all of them."""
    if not files:
        return []
    memory, system = lake.memory(name), file_system(lake.root, lake.options)
    try:
        each = of_files(spark, system, [inside(file.file_path) for file in files], name)
    except Exception as error:
        from menzil.spark.session import explain

        told, damaged = explain(error), file_problems(lake, files, whole=True)
        if not damaged and not isinstance(told, LakeDamagedError):
            raise told from error  # the files are well: what failed is Spark, or a Python of its tasks
        return damaged or [f"The files cannot be read: {told.message}"]
    wrong = []
    for label in sorted({EVENTS} if name == EVENTS else {month_of(file) for file in files}):
        mine = [file for file in files if name == EVENTS or month_of(file) == label]
        expected = total(memory.slices(label))
        seen = Fingerprint.total(each[inside(file.file_path)] for file in mine)
        if seen != expected:
            what = "the event log" if name == EVENTS else label
            wrong += file_problems(lake, mine, whole=True) or [
                f"The files of {what} hold other rows than were exported: {difference(expected, seen)}.",
                *suspects(lake, name, mine),
            ]
    return wrong


def _counts(lake: Lake, name: str, files: Sequence[DataFile]) -> list[str]:
    """Compactions move rows between files; together they hold what was exported."""
    memory, problems = lake.memory(name), []
    counted: dict[str, int] = dict.fromkeys(memory.labels, 0)
    for file in files:
        label = EVENTS if name == EVENTS else month_of(file)
        counted[label] = counted.get(label, 0) + file.record_count
    for label, rows in sorted(counted.items()):
        expected = total(memory.slices(label)).rows
        if rows != expected:
            what = "the event log" if name == EVENTS else label
            problems.append(f"The files of {what} hold {rows:,} rows, and {expected:,} were exported.")
            mine = [file for file in files if name == EVENTS or month_of(file) == label]
            if not file_problems(lake, mine):  # those are told by themselves
                problems += suspects(lake, name, mine)
    return problems
