"""Whether PySpark is there, found out without reading it: that takes a while, in which a JVM can start."""

from __future__ import annotations

import importlib.util
import sys

from menzil.model.errors import MenzilError
from menzil.model.parts import must_be_whole


def must_be_installed() -> None:
    """Raise a sentence when it is not. None in sys.modules is how Python is told that something cannot be imported."""
    must_be_whole("The room of Spark and the lake", "menzil.spark.read", "menzil-lake", "spark")
    if importlib.util.find_spec("pyspark") is None or sys.modules.get("pyspark.sql", ...) is None:
        raise MenzilError("PySpark is not installed.", hint="run `pip install 'menzil[spark]'`")
