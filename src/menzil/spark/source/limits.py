"""Read limits of streaming sources, which came with PySpark 4.2; words that stand for them on 4.0 and 4.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

    KNOWN = True
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )

        KNOWN = True
    except ImportError:
        KNOWN = False

        class ReadLimit:
            """How much a batch may take."""

        class ReadAllAvailable(ReadLimit):
            """All."""

        class ReadMaxRows(ReadLimit):
            """So many rows."""

        class SupportsTriggerAvailableNow:
            """Nothing: Spark reads all that is there in one batch."""


__all__ = ["KNOWN", "ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]
