"""The lake: the history of messages as two Apache Iceberg tables that every engine reads."""

from __future__ import annotations

from menzil.spark.lake.compact import CompactReport, compact
from menzil.spark.lake.errors import LakeBusyError, LakeDamagedError, LakeError, LakeForeignError
from menzil.spark.lake.layout import directory
from menzil.spark.lake.read import events, files, read
from menzil.spark.lake.sweep import SweepReport, sweep
from menzil.spark.lake.verify import VerifyReport, verify

__all__ = [
    "CompactReport",
    "LakeBusyError",
    "LakeDamagedError",
    "LakeError",
    "LakeForeignError",
    "SweepReport",
    "VerifyReport",
    "compact",
    "directory",
    "events",
    "files",
    "read",
    "sweep",
    "verify",
]
