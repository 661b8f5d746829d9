"""A few rows for the driver, with every time that PostgreSQL has."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def few(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small frame; times are moments in UTC. Driver.

    collect() makes wall clocks of this machine, and fails where they leave the years 1 to 9999: on the last second of
    9999 anywhere east of Greenwich.
    """
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows
