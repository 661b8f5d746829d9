"""The lake: the history of messages as Parquet files, and the manifests that say which of them count."""

from __future__ import annotations

from menzil.spark.lake.compact import CompactReport, compact
from menzil.spark.lake.errors import LakeBusyError, LakeDamagedError, LakeError, LakeForeignError
from menzil.spark.lake.layout import directory
from menzil.spark.lake.read import events, files, read
from menzil.spark.lake.verify import VerifyReport, verify

__all__ = [
    "CompactReport",
    "LakeBusyError",
    "LakeDamagedError",
    "LakeError",
    "LakeForeignError",
    "VerifyReport",
    "compact",
    "directory",
    "events",
    "files",
    "read",
    "verify",
]
