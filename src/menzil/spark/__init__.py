"""Spark: sessions that work, the data source, and the jobs of the pipeline. Needs `pip install 'menzil[spark]'`."""

from __future__ import annotations

from menzil.model.errors import MenzilError

try:
    import pyspark.sql.datasource as _  # noqa: F401
except ImportError as error:
    raise MenzilError("PySpark is not installed.", hint="run `pip install 'menzil[spark]'`") from error

from menzil.spark.read import read, relations
from menzil.spark.session import explain, get_session

__all__ = ["explain", "get_session", "read", "relations"]
