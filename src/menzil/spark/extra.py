"""Whether PySpark is there, found out without reading it: that takes a while, in which a JVM can start."""

from __future__ import annotations

import importlib.util
import sys

from menzil.model.errors import MenzilError
from menzil.model.parts import must_be_whole


def part_must_be_installed() -> None:
    """Raise a sentence where this room is missing."""
    less = ", or 'menzil[lake]' to read the lake without Spark"
    must_be_whole("The room of Spark and the lake", "menzil.spark.read", "menzil-lake", "spark", less)


def must_be_installed() -> None:
    """Raise a sentence where PySpark is missing. None in sys.modules tells Python that a module cannot be imported."""
    if importlib.util.find_spec("pyspark") is None or sys.modules.get("pyspark.sql", ...) is None:
        raise MenzilError("PySpark is not installed.", hint="run `pip install 'menzil[spark]'`")
