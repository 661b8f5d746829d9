"""Where a lake lies: its address, and how files are reached there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from menzil.model.errors import UsageError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyiceberg.io import FileIO
    from pyspark.sql import SparkSession

#: What a task may know of a catalog's properties: how to reach files. The rest could hold a password of the database.
STORAGE = ("s3.", "gcs.", "gs.", "adls.", "hdfs.", "client.", "oss.")

#: Writes files that survive a power cut, where that is ours to see to.
DURABLE = {"py-io-impl": "menzil.spark.lake.durable.DurableFileIO"}


def address(lake: str | os.PathLike[str], spark: SparkSession | None = None) -> str:
    """The URL of a lake, spelled in one way only: Iceberg compares paths as texts."""
    from menzil.spark.lake.catalog import place

    found = place(os.fspath(lake))
    if spark is not None and local(found) is not None:
        _demand_name(found, spark)
    return found


def local(location: str) -> str | None:
    """The path of a file of this machine; None for what lies elsewhere."""
    if location.startswith("file://"):
        return location.removeprefix("file://")
    return None if "://" in location else location


def shown(location: str) -> str:
    """A location as people write it."""
    return local(location) or location


def storage_options(given: dict[str, Any]) -> dict[str, str]:
    """What is needed to reach files, and nothing else of these properties."""
    return {name: str(value) for name, value in given.items() if name.startswith(STORAGE)}


def file_io(root: str, options: dict[str, str]) -> FileIO:
    """Files of a lake, for the driver."""
    from pyiceberg.io import load_file_io

    return load_file_io(options | DURABLE, root)


def file_system(root: str, options: dict[str, str]) -> FileSystem:
    """Files of a lake, for tasks: pyarrow alone, and it travels with its credentials."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    io = PyArrowFileIO(options)
    scheme, netloc, _ = PyArrowFileIO.parse_location(root)
    found: FileSystem = io.fs_by_scheme(scheme, netloc)
    return found


def inside(location: str) -> str:
    """The path of a location in its file system."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    return PyArrowFileIO.parse_location(location)[2]


def _demand_name(root: str, spark: SparkSession) -> None:
    """Refuse a directory whose name Java would write with question marks: the lake would lie elsewhere."""
    if root.isascii():
        return
    encoding = str(spark._jvm.java.lang.System.getProperty("sun.jnu.encoding"))  # type: ignore[union-attr]
    try:
        root.encode(encoding)
    except UnicodeEncodeError:
        sentence = f"The Java of this session names files in {encoding}, which has not all letters of {root!r}."
        raise UsageError(sentence, hint="set LC_ALL=C.UTF-8 before Spark starts, or choose another directory") from None
