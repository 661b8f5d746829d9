"""A few rows for the driver, also those with times that Python cannot hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame


def few(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small frame. Times are moments in UTC; a time outside the years 1 to 9999 is a text. Driver.

    collect() makes wall clocks of this machine, and fails where they leave those years: on the last second of 9999
    anywhere east of Greenwich.
    """
    table = frame.toArrow()
    columns = [[_value(cell) for cell in column] for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _value(cell: pa.Scalar[Any]) -> Any:
    """As Python has it. PostgreSQL and Spark have years that a datetime lacks: those are told as Arrow writes them."""
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        if not pa.types.is_timestamp(cell.type):
            raise
        return cell.cast(pa.string()).as_py()
